"""An API process that is killed takes no accepted job with it."""

import time
from typing import Any

import httpx
import pytest

from tests.faults.clients import Clients
from tests.faults.stack import Stack
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.faults]

NUM_CLIENTS = 8
# Enough for the kill to come in the middle.
NUM_BEFORE, NUM_AFTER = 40, 40


class Storm(Clients):
    """Clients that submit as fast as they are answered and note what was accepted."""

    def __init__(self, url: str, body: Any) -> None:
        super().__init__(NUM_CLIENTS)
        self.other_statuses: set[int] = set()
        self.num_broken = 0
        self._url = url
        self._body = body

    def use(self) -> None:
        with httpx.Client(base_url=self._url, timeout=20, trust_env=False) as http:
            while not self.ending.is_set():
                try:
                    answer = http.post("/v1/jobs", json=self._body)
                except httpx.TransportError:
                    self.num_broken += 1
                    time.sleep(0.05)
                    continue
                if answer.status_code == 202:
                    self.accepted.append(answer.json()["id"])
                else:
                    self.other_statuses.add(answer.status_code)


def test_every_job_accepted_in_a_storm_outlives_the_api_process_and_finishes(
    stack: Stack, short_job: Any
) -> None:
    with Storm(str(stack.http.base_url), short_job) as storm:
        wait_for(lambda: len(storm.accepted) >= NUM_BEFORE, "the storm to begin")
        stack.processes["api"].kill()
        wait_for(lambda: storm.num_broken >= NUM_CLIENTS, "every client to be cut off")
        num_accepted = len(storm.accepted)
        stack.start_api()
        wait_for(lambda: len(storm.accepted) >= num_accepted + NUM_AFTER, "the storm to go on")
    assert storm.other_statuses == set()
    assert len(set(storm.accepted)) == len(storm.accepted)
    jobs = [stack.wait(job_id) for job_id in storm.accepted]
    assert {(job["state"], job["attempt"]) for job in jobs} == {("succeeded", 1)}

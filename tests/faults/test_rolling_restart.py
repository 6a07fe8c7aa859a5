"""Every process can be replaced while clients go on."""

import itertools
import signal
import time
from typing import Any

import httpx
import pytest

from tests.embedded_postgres import free_port
from tests.faults.clients import Clients
from tests.faults.stack import Stack
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.faults]

NUM_CLIENTS = 2


class Load(Clients):
    """Clients that submit and poll at two addresses, as through a balancer: next if cut off."""

    def __init__(self, urls: list[str], body: Any) -> None:
        super().__init__(NUM_CLIENTS)
        self.statuses: set[int] = set()
        self._urls = urls
        self._body = body

    def use(self) -> None:
        services = [httpx.Client(base_url=url, timeout=20, trust_env=False) for url in self._urls]
        for service in itertools.cycle(services):
            if self.ending.is_set():
                break
            try:
                answer = service.post("/v1/jobs", json=self._body)
                self.statuses.add(answer.status_code)
                if answer.status_code == 202:
                    self.accepted.append(answer.json()["id"])
                    self.statuses.add(service.get(answer.headers["Location"]).status_code)
                self.statuses.add(service.get("/v1/jobs").status_code)
            except httpx.TransportError:
                pass
            # Some four jobs a second, each of which takes processor time.
            time.sleep(0.5)
        for service in services:
            service.close()


def test_clients_see_no_error_while_every_process_is_replaced_and_a_running_job_is_handed_over(
    stack: Stack, short_job: Any, long_chains: Any
) -> None:
    second_port = free_port()
    second_url = f"http://127.0.0.1:{second_port}"
    stack.start_api("api-2", port=second_port)
    wait_for(lambda: answers(second_url), "the second API")
    with Load([str(stack.http.base_url), second_url], short_job) as load:
        wait_for(lambda: len(load.accepted) >= 2 * NUM_CLIENTS, "the load to begin")
        for name, url in (("api", str(stack.http.base_url)), ("api-2", second_url)):
            end_by_sigterm(stack, name)
            stack.start_again(name)
            wait_for(lambda url=url: answers(url), "the new API")

        job_id = stack.submit(long_chains)
        stack.wait_until_fitting(job_id)
        worker = worker_that_says(stack, f"job {job_id}: attempt 1 begins")
        end_by_sigterm(stack, worker)
        assert f"job {job_id}: attempt 1 stopped (shutdown)" in log_of(stack, worker)
        stack.start_again(worker)
        end_by_sigterm(stack, "dispatcher")
        stack.start_again("dispatcher")
        num_accepted = len(load.accepted)
        wait_for(lambda: len(load.accepted) > num_accepted + NUM_CLIENTS, "the load to go on")
    assert load.statuses == {200, 202}
    jobs = [stack.wait(accepted) for accepted in [job_id, *load.accepted]]
    assert {(job["state"], job["attempt"]) for job in jobs} == {("succeeded", 1)}
    # What was done is stored at the handing over, as no checkpoint was due for an hour.
    assert stack.client.result(job_id)["timing"]["resumed"] is True


def log_of(stack: Stack, name: str) -> str:
    return stack.processes[name].log_file.read_text()


def worker_that_says(stack: Stack, text: str) -> str:
    """Return the name of the worker whose log has this text."""
    names = [process.command.name for process in stack.workers]
    return wait_for(
        lambda: next((name for name in names if text in log_of(stack, name)), None), f"{text!r}"
    )


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=20, trust_env=False).is_success
    except httpx.TransportError:
        return False


def end_by_sigterm(stack: Stack, name: str) -> None:
    process = stack.processes[name]
    process.send_signal(signal.SIGTERM)
    wait_for(lambda: process.has_ended, f"{name} to end")

"""What is said fifty times is done once."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from tests.faults.stack import Stack
from tests.waiting import wait_for
from worker.queue.celery_app import TASK_NAME, create_celery
from worker.settings import WorkerSettings

pytestmark = [pytest.mark.integration, pytest.mark.faults]

NUM_REPEATS = 50


def test_a_message_that_comes_fifty_times_makes_one_attempt(
    stack: Stack, broker: Any, short_job: Any
) -> None:
    with stack.workers_frozen():
        job_id = stack.submit(short_job)
        with closing(create_celery(WorkerSettings(broker_url=broker.url))) as app:
            for _ in range(NUM_REPEATS):
                app.send_task(TASK_NAME, args=[job_id])
    assert stack.wait(job_id)["state"] == "succeeded"
    wait_for(lambda: broker.num_messages() == 0, "the queue to be empty")
    # A job submitted after them ends after they were looked at.
    stack.wait(stack.submit(short_job))
    job = stack.client.job(job_id)
    assert (job["state"], job["attempt"], stack.num_results(job_id)) == ("succeeded", 1, 1)


def test_fifty_identical_submissions_under_one_key_make_one_job_and_a_changed_one_is_refused(
    stack: Stack, short_job: Any
) -> None:
    headers = {"Idempotency-Key": "the-same-for-all"}

    def submit(_: int) -> Any:
        return stack.http.post("/v1/jobs", json=short_job, headers=headers)

    with ThreadPoolExecutor(10) as clients:
        answers = list(clients.map(submit, range(NUM_REPEATS)))
    statuses = Counter(answer.status_code for answer in answers)
    assert statuses == {202: 1, 200: NUM_REPEATS - 1}
    [job_id] = {answer.json()["id"] for answer in answers}
    job = stack.wait(job_id)
    assert (job["state"], job["attempt"]) == ("succeeded", 1)

    changed = stack.http.post("/v1/jobs", json={**short_job, "seed": 2}, headers=headers)
    assert (changed.status_code, changed.json()["code"]) == (422, "idempotency-key-reused")

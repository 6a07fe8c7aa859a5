"""A broker that is away, frozen or has forgotten everything delays jobs and loses none."""

import time
from typing import Any

import pytest

from tests.faults.stack import Stack
from tests.waiting import wait_for
from worker.queue.celery_app import SOCKET_SECONDS

pytestmark = [pytest.mark.integration, pytest.mark.faults]

NUM_JOBS = 5


def submit_some(stack: Stack, body: Any) -> list[str]:
    """Submit some jobs, none of which waits for the broker; return their ids."""
    job_ids, seconds = [], []
    for _ in range(NUM_JOBS):
        began = time.perf_counter()
        answer = stack.http.post("/v1/jobs", json=body)
        seconds.append(time.perf_counter() - began)
        assert answer.status_code == 202
        job_ids.append(answer.json()["id"])
    # Had they waited for a broker that answers nothing, each would have taken longer.
    assert min(seconds) < SOCKET_SECONDS
    return job_ids


def assert_all_finish(stack: Stack, job_ids: list[str]) -> None:
    jobs = [stack.wait(job_id) for job_id in job_ids]
    assert [(job["state"], job["attempt"]) for job in jobs] == [("succeeded", 1)] * len(jobs)


def test_jobs_submitted_while_the_broker_is_down_are_accepted_at_once_and_finish_later(
    stack: Stack, broker: Any, short_job: Any
) -> None:
    broker.kill()
    job_ids = submit_some(stack, short_job)
    broker.start()
    assert_all_finish(stack, job_ids)


def test_jobs_submitted_while_the_broker_is_frozen_are_accepted_at_once_and_finish_later(
    stack: Stack, broker: Any, short_job: Any
) -> None:
    with broker.frozen():
        job_ids = submit_some(stack, short_job)
        # Long enough for every process to notice.
        time.sleep(SOCKET_SECONDS + 1)
        job_ids += submit_some(stack, short_job)
        assert {stack.client.job(job_id)["state"] for job_id in job_ids} == {"queued"}
    assert_all_finish(stack, job_ids)


def test_jobs_whose_messages_a_restarted_broker_has_lost_finish_all_the_same(
    stack: Stack, broker: Any, short_job: Any
) -> None:
    with stack.workers_frozen():
        job_ids = submit_some(stack, short_job)
        wait_for(lambda: broker.num_messages() >= NUM_JOBS - len(stack.workers), "the messages")
        broker.kill()
        broker.start()
        assert broker.num_messages() == 0
    assert_all_finish(stack, job_ids)


def test_jobs_submitted_while_the_broker_is_full_are_accepted_and_workers_wait_for_it(
    stack: Stack, broker: Any, short_job: Any
) -> None:
    def is_refusing() -> bool:
        state: str = stack.http.get("/readyz").json()["broker"]
        return state == "refusing"

    with broker.full():
        assert is_refusing()
        job_ids = submit_some(stack, short_job)
        # One that starts now, which celery by itself would not.
        starting = stack.start_worker("worker-3")
        wait_for(lambda: "takes no messages" in starting.log_file.read_text(), "its word")
        # Long enough for all the others to notice.
        time.sleep(SOCKET_SECONDS + 1)
        assert not any(process.has_ended for process in stack.processes.values())
        assert {stack.client.job(job_id)["state"] for job_id in job_ids} == {"queued"}
        assert is_refusing()
    assert_all_finish(stack, job_ids)
    wait_for(lambda: not is_refusing(), "the broker to be as it was")
    # All three take jobs again.
    wait_for(lambda: stack.http.get("/readyz").json()["workers"] == 3, "the workers to be there")


def test_a_worker_that_is_given_no_message_is_missed(stack: Stack, broker: Any) -> None:
    def num_workers() -> Any:
        return stack.http.get("/readyz").json()["workers"]

    wait_for(lambda: num_workers() == 2, "the workers to be there")
    broker.client.execute_command("ACL", "SETUSER", "default", "-brpop")
    try:
        # They connect, ask and are sent away, several times a second.
        wait_for(lambda: num_workers() == 0, "the workers to be missed")
    finally:
        broker.client.execute_command("ACL", "SETUSER", "default", "+@all")
    wait_for(lambda: num_workers() == 2, "the workers to be there again")

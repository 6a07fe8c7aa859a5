"""A job that harms its worker each time fails with the reason, and no other job suffers."""

from typing import Any

import pytest

from tests.faults.stack import Stack
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.faults]


def assert_others_are_unaffected(stack: Stack, job_ids: list[str]) -> None:
    jobs = [stack.wait(job_id) for job_id in job_ids]
    assert [(job["state"], job["attempt"]) for job in jobs] == [("succeeded", 1)] * len(jobs)


def test_a_job_that_kills_its_process_each_time_fails_after_three_attempts(
    stack: Stack, long_fit: Any, short_job: Any
) -> None:
    job_id = stack.submit(long_fit)
    others = []
    for attempt in (1, 2, 3):
        wait_for(lambda attempt=attempt: stack.client.job(job_id)["attempt"] == attempt, "a claim")
        stack.wait_until_fitting(job_id)
        stack.busy_child().kill()
        others.append(stack.submit(short_job))
    job = stack.wait(job_id)
    assert (job["state"], job["attempt"], job["error"]["code"]) == ("failed", 3, "worker-lost")
    assert stack.num_results(job_id) == 0
    assert_others_are_unaffected(stack, others)


def test_a_job_that_eats_memory_past_its_limit_fails_after_three_attempts(
    stack: Stack, greedy_fit: Any, short_job: Any
) -> None:
    job_id = stack.submit(greedy_fit)
    others = []
    for attempt in (1, 2, 3):
        wait_for(lambda attempt=attempt: stack.client.job(job_id)["attempt"] == attempt, "a claim")
        others.append(stack.submit(short_job))
    job = stack.wait(job_id)
    assert (job["state"], job["attempt"], job["error"]["code"]) == ("failed", 3, "out-of-memory")
    assert stack.num_results(job_id) == 0
    assert_others_are_unaffected(stack, others)

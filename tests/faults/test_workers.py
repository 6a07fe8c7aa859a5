"""A worker that is killed, cut off or frozen costs at most its lease."""

import os
import signal
import time
from datetime import datetime
from typing import Any

import pytest

from tests.faults.stack import Stack, processor_seconds, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.faults]

# What a machine with much else to do may add.
SLACK_SECONDS = 10.0


def began_at(job: dict[str, Any]) -> float:
    """Return when the latest attempt began, in seconds since 1970."""
    return datetime.fromisoformat(job["started_at"]).timestamp()


@pytest.mark.parametrize("whole_tree", [False, True], ids=["process", "tree"])
def test_a_job_whose_worker_is_killed_is_done_again_after_the_lease_with_the_same_numbers(
    stack: Stack, long_fit: Any, undisturbed: Any, whole_tree: bool
) -> None:
    job_id = stack.submit(long_fit)
    stack.wait_until_fitting(job_id)
    child = stack.busy_child()
    if whole_tree:
        stack.parent_of(child).kill()
    else:
        child.kill()
    killed = time.time()
    job = stack.wait(job_id)
    assert (job["state"], job["attempt"]) == ("succeeded", 2)
    assert began_at(job) < killed + stack.lease_seconds + stack.wake_seconds + SLACK_SECONDS
    assert stack.estimates(job_id) == undisturbed


def test_a_job_whose_worker_lost_its_parent_ends_once_and_leaves_no_process(
    stack: Stack, long_fit: Any, undisturbed: Any
) -> None:
    job_id = stack.submit(long_fit)
    stack.wait_until_fitting(job_id)
    child = stack.busy_child()
    os.kill(child.ppid(), signal.SIGKILL)
    job = stack.wait(job_id)
    assert job["state"] == "succeeded"
    assert stack.estimates(job_id) == undisturbed
    wait_for(lambda: not child.is_running(), "the orphan to end")


def test_what_a_frozen_worker_finishes_late_changes_nothing(
    stack: Stack, long_fit: Any, undisturbed: Any
) -> None:
    job_id = stack.submit(long_fit)
    stack.wait_until_fitting(job_id)
    frozen = stack.busy_child()
    frozen.suspend()
    try:
        job = stack.wait(job_id)
        assert (job["state"], job["attempt"]) == ("succeeded", 2)
        assert stack.estimates(job_id) == undisturbed
    finally:
        frozen.resume()

    def is_idle() -> bool:
        used = processor_seconds(frozen)
        time.sleep(1)
        return processor_seconds(frozen) - used < 0.1

    wait_for(is_idle, "the woken worker to stop computing")
    assert stack.client.job(job_id) == job
    assert stack.estimates(job_id) == undisturbed

"""A cancelled job stops, wherever it was, and stays cancelled."""

import time
from typing import Any

import numpy as np
import pytest

from tests.faults.stack import Stack, processor_seconds, wait_until_idle

pytestmark = [pytest.mark.integration, pytest.mark.faults]

# What a process may still compute after its job was cancelled, in processor seconds: a beat, and
# the grace that a fit has to stop by itself. Each job has much more left to do.
STOP_SECONDS = 5.0


def test_a_job_cancelled_while_it_waits_never_begins(stack: Stack, short_job: Any) -> None:
    with stack.workers_frozen():
        job_id = stack.submit(short_job)
        answer = stack.http.put(f"/v1/jobs/{job_id}/cancellation")
        assert (answer.status_code, answer.json()["state"]) == (202, "cancelled")
    # A job submitted after it ends after its message was looked at.
    stack.wait(stack.submit(short_job))
    job = stack.client.job(job_id)
    assert (job["state"], job["attempt"], job["started_at"]) == ("cancelled", 0, None)


@pytest.mark.parametrize("reports", [True, False], ids=["fit", "silent"])
def test_a_cancelled_job_stops_computing_in_time_and_stays_cancelled(
    stack: Stack, long_fit: Any, silent_job: Any, reports: bool
) -> None:
    endless = {**long_fit, "estimator": {**long_fit["estimator"], "max_iter": 1000}}
    job_id = stack.submit(endless if reports else silent_job)
    child = stack.busy_child()
    used = processor_seconds(child)
    stack.client.cancel(job_id)
    wait_until_idle(child)
    assert processor_seconds(child) < used + STOP_SECONDS
    job = stack.client.job(job_id)
    assert (job["state"], job["attempt"]) == ("cancelled", 1)
    assert stack.num_results(job_id) == 0
    # Time enough for its lease to run out and for another worker to be told.
    time.sleep(stack.lease_seconds)
    assert stack.client.job(job_id) == job


def test_of_a_cancel_and_a_finish_that_race_one_wins_for_good(stack: Stack, short_job: Any) -> None:
    rng = np.random.default_rng(1)
    job_id = stack.submit(short_job)
    stack.wait(job_id)
    promised = {job_id: promise_of_cancel(stack, job_id)}
    assert promised == {job_id: "succeeded"}
    for delay in (0, *rng.uniform(0, 0.5, size=20)):
        job_id = stack.submit(short_job)
        # On an idle machine a short job begins and ends within these times.
        time.sleep(delay)
        promised[job_id] = promise_of_cancel(stack, job_id)
    for job_id, state in promised.items():
        assert stack.wait(job_id)["state"] == state
        assert stack.num_results(job_id) == (state == "succeeded")


def promise_of_cancel(stack: Stack, job_id: str) -> str:
    """Ask for a job's end; return the state that the answer promises."""
    answer = stack.http.put(f"/v1/jobs/{job_id}/cancellation")
    # 202 promises a cancel; 200 says that the job had ended before.
    return {202: "cancelled", 200: "succeeded"}[answer.status_code]

"""A database that is away for a while costs nothing but time."""

import signal
import time
from typing import Any

import pytest

from tests.faults.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.faults]


@pytest.mark.parametrize("seconds", [20, pytest.param(120, marks=pytest.mark.slow)])
def test_a_job_outlasts_a_database_that_crashes_under_it_and_finishes_exactly_once(
    stack: Stack, postgres: Any, long_fit: Any, undisturbed: Any, seconds: int
) -> None:
    job_id = stack.submit(long_fit)
    stack.wait_until_fitting(job_id)
    postgres.stop(signal.SIGQUIT)
    try:
        time.sleep(seconds)
        refusal = stack.http.get(f"/v1/jobs/{job_id}")
        assert (refusal.status_code, refusal.json()["code"]) == (503, "unavailable")
        assert refusal.headers["Retry-After"]
    finally:
        postgres.start()
    stack.wait_until_ready()
    job = stack.wait(job_id)
    assert job["state"] == "succeeded"
    # Its worker keeps the result; the lease has run out, so another may have begun again.
    assert job["attempt"] in (1, 2)
    assert stack.estimates(job_id) == undisturbed

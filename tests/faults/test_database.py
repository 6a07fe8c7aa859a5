"""A database that is away for a while costs nothing but time."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from service.app import THREADS
from service.db.database import SILENCE_SECONDS
from tests.faults.stack import LEASE_SECONDS, Stack

pytestmark = [pytest.mark.integration, pytest.mark.faults]

# Long enough on a busy machine for an answer that is due after `SILENCE_SECONDS` and a little.
ANSWER_SECONDS = 6 * SILENCE_SECONDS


@pytest.mark.parametrize(
    "seconds", [2 * LEASE_SECONDS, pytest.param(120, marks=pytest.mark.release)]
)
def test_a_job_outlasts_a_database_that_crashes_under_it_and_finishes_exactly_once(
    stack: Stack, postgres: Any, long_fit: Any, undisturbed: Any, seconds: float
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


def test_probes_are_answered_while_requests_wait_for_a_database_that_hangs(
    stack: Stack, postgres: Any
) -> None:
    with ThreadPoolExecutor(THREADS + 1) as pool:
        # As many connections as threads, which are then at rest.
        assert {answer.status_code for answer in pool.map(lambda _: _jobs(stack), range(40))} == {
            200
        }
        with postgres.frozen():
            waiting = [pool.submit(_jobs, stack) for _ in range(THREADS + 1)]
            time.sleep(1)
            assert stack.http.get("/livez", timeout=5).is_success
            for _ in range(2):
                answer = stack.http.get("/readyz", timeout=5)  # as the compose file has it
                assert answer.status_code == 503
                assert answer.json()["database"] == "unreachable"
                assert answer.json()["broker"] == "reachable"
        assert {request.result().status_code for request in waiting} <= {200, 503}
    stack.wait_until_ready()


def test_a_job_outlasts_a_database_that_hangs_and_nobody_waits_for_ever(
    stack: Stack, postgres: Any, long_fit: Any, undisturbed: Any
) -> None:
    job_id = stack.submit(long_fit)
    stack.wait_until_fitting(job_id)
    with ThreadPoolExecutor(4 * THREADS) as pool, postgres.frozen():
        # Four times as many as there are threads to wait in; each waits `ANSWER_SECONDS` at most.
        answers = list(pool.map(lambda _: _jobs(stack), range(4 * THREADS)))
        for answer in answers:
            assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
            assert answer.headers["Retry-After"]
        # What follows knows already, and does not wait for as long again.
        began = time.monotonic()
        assert _jobs(stack).status_code == 503
        assert time.monotonic() - began < SILENCE_SECONDS
    stack.wait_until_ready()
    assert _jobs(stack).is_success
    job = stack.wait(job_id)
    assert (job["state"], stack.num_results(job_id)) == ("succeeded", 1)
    assert job["attempt"] in (1, 2)  # as above
    assert stack.estimates(job_id) == undisturbed


def _jobs(stack: Stack) -> httpx.Response:
    return stack.http.get("/v1/jobs", timeout=ANSWER_SECONDS)

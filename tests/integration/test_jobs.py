"""Jobs through a live service, and what becomes of them when its parts are killed or frozen."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redis import Redis

from worker.celery_app import QUEUE_NAME, TASK_NAME, create_celery
from worker.settings import WorkerSettings

pytestmark = pytest.mark.integration

WaitFor = Callable[..., Any]
# A fit of the large table with these takes some seconds and can be interrupted all along.
LONG: dict[str, Any] = {"penalty": 1.0, "noise_ratio": 30, "max_iter": 12, "tol": 1e-9}


def estimates(document: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of a result that another run must repeat."""
    return {key: document[key] for key in ("precision", "linear", "log_partition", "penalty")}


@pytest.fixture
def uploaded(api: Any, large_table: np.ndarray) -> str:
    """Return the id of a data set whose fit takes long."""
    return str(api.upload(large_table))


@pytest.fixture
def broker(processes: Any) -> Redis:
    """Return a client of the live service's Valkey."""
    return Redis.from_url(broker_url(processes))


def broker_url(processes: Any) -> str:
    environment = Path(f"/proc/{processes.worker}/environ").read_text().split("\0")
    return dict(line.split("=", 1) for line in environment if line)["VNCE_BROKER_URL"]


def test_a_table_goes_in_and_a_network_comes_out(api: Any, small_table: np.ndarray) -> None:
    job_id = api.submit(api.upload(small_table), penalty=1.0)
    job = api.wait(job_id, "succeeded", "failed")
    assert (job["state"], job["attempt"], job["error"]) == ("succeeded", 1, None)
    assert job["progress"]["fraction"] <= 1
    precision = np.array(api.result(job_id)["precision"])
    np.testing.assert_array_equal(precision, precision.T)
    assert (np.diag(precision) > 0).all()


def test_a_repeated_message_makes_one_attempt(
    api: Any, processes: Any, small_table: np.ndarray, wait_for: WaitFor, broker: Redis
) -> None:
    job_id = api.submit(api.upload(small_table), penalty=1.0)
    with closing(create_celery(WorkerSettings(broker_url=broker_url(processes)))) as app:
        for _ in range(50):
            app.send_task(TASK_NAME, args=[job_id])
    assert api.wait(job_id, "succeeded", "failed")["state"] == "succeeded"
    wait_for(lambda: broker.llen(QUEUE_NAME) == 0, "the queue to be empty")
    time.sleep(0.5)
    job = api.job(job_id)
    assert (job["state"], job["attempt"]) == ("succeeded", 1)


def test_a_cancelled_job_stops_computing_and_stays_cancelled(
    api: Any, processes: Any, uploaded: str, small_table: np.ndarray
) -> None:
    job_id = api.submit(uploaded, **LONG)
    api.wait_until_fitting(job_id)
    child = processes.busy_child()
    began = time.monotonic()
    api.cancel(job_id)
    assert api.wait(job_id, "cancelled", "succeeded", "failed")["state"] == "cancelled"
    assert time.monotonic() - began < 5
    used = processes.processor_seconds(child)
    time.sleep(1)
    assert processes.processor_seconds(child) - used < 0.5
    # The worker takes the next job, and the cancelled one has no result.
    next_id = api.submit(api.upload(small_table), penalty=1.0)
    assert api.wait(next_id, "succeeded", "failed")["state"] == "succeeded"
    assert api.job(job_id)["state"] == "cancelled"
    assert api.http.get(f"/v1/jobs/{job_id}/result").status_code == 409


def test_a_job_cancelled_while_it_waits_never_begins(
    api: Any, processes: Any, uploaded: str, small_table: np.ndarray
) -> None:
    os.kill(processes.worker, signal.SIGSTOP)  # nobody takes messages meanwhile
    try:
        job_id = api.submit(uploaded, **LONG)
        api.cancel(job_id)
        assert api.job(job_id)["state"] == "cancelled"
    finally:
        os.kill(processes.worker, signal.SIGCONT)
    behind_it = api.submit(api.upload(small_table), penalty=1.0)
    api.wait(behind_it, "succeeded")
    job = api.job(job_id)
    assert (job["state"], job["attempt"], job["started_at"]) == ("cancelled", 0, None)


@pytest.mark.faults
def test_a_job_whose_process_is_killed_finishes_on_the_second_attempt_with_the_same_numbers(
    api: Any, processes: Any, uploaded: str
) -> None:
    job_id = api.submit(uploaded, **LONG)
    api.wait_until_fitting(job_id)
    os.kill(processes.busy_child(), signal.SIGKILL)
    undisturbed = api.submit(uploaded, **LONG)
    job = api.wait(job_id, "succeeded", "failed")
    assert (job["state"], job["attempt"]) == ("succeeded", 2)
    assert api.wait(undisturbed, "succeeded", "failed")["attempt"] == 1
    assert estimates(api.result(job_id)) == estimates(api.result(undisturbed))


@pytest.mark.faults
def test_a_late_finish_changes_nothing(api: Any, processes: Any, uploaded: str) -> None:
    job_id = api.submit(uploaded, **LONG)
    api.wait_until_fitting(job_id)
    frozen = processes.busy_child()
    processes.freeze(frozen)
    try:
        job = api.wait(job_id, "succeeded", "failed")
        assert (job["state"], job["attempt"]) == ("succeeded", 2)
        before = api.result(job_id)
    finally:
        os.kill(frozen, signal.SIGCONT)
    # Awake again it notices that its lease is gone, and stops.
    used = processes.settled_processor_seconds(frozen)
    time.sleep(1)
    assert processes.processor_seconds(frozen) - used < 0.5
    assert api.result(job_id) == before
    assert api.job(job_id) == job


@pytest.mark.faults
def test_a_worker_that_is_asked_to_end_gives_the_attempt_back(
    api: Any, processes: Any, uploaded: str
) -> None:
    job_id = api.submit(uploaded, **LONG)
    api.wait_until_fitting(job_id)
    os.kill(processes.worker, signal.SIGTERM)
    job = api.wait(job_id, "queued", "succeeded", "failed")
    assert (job["state"], job["attempt"]) == ("queued", 0)
    job = api.wait(job_id, "succeeded", "failed")
    assert (job["state"], job["attempt"]) == ("succeeded", 1)


@pytest.mark.faults
def test_a_job_submitted_while_the_broker_is_frozen_runs_when_it_is_back(
    api: Any, processes: Any, small_table: np.ndarray
) -> None:
    dataset_id = api.upload(small_table)
    os.kill(processes.one("valkey"), signal.SIGSTOP)
    try:
        job_id = api.submit(dataset_id, penalty=1.0)
        time.sleep(1)
        assert api.job(job_id)["state"] == "queued"
    finally:
        os.kill(processes.one("valkey"), signal.SIGCONT)
    assert api.wait(job_id, "succeeded", "failed")["state"] == "succeeded"


@pytest.mark.faults
def test_jobs_that_the_broker_forgot_run_all_the_same(
    api: Any, processes: Any, small_table: np.ndarray, wait_for: WaitFor, broker: Redis
) -> None:
    dataset_id = api.upload(small_table)
    os.kill(processes.worker, signal.SIGSTOP)
    try:
        job_ids = [api.submit(dataset_id, penalty=1.0) for _ in range(3)]
        wait_for(lambda: broker.llen(QUEUE_NAME) >= 2, "messages to be in the queue")
        broker.flushall()
    finally:
        os.kill(processes.worker, signal.SIGCONT)
    jobs = [api.wait(job_id, "succeeded", "failed") for job_id in job_ids]
    assert [(job["state"], job["attempt"]) for job in jobs] == [("succeeded", 1)] * 3


@pytest.mark.faults
def test_a_worker_goes_on_after_its_broker_was_killed(
    api: Any, processes: Any, small_table: np.ndarray, wait_for: WaitFor
) -> None:
    dataset_id = api.upload(small_table)
    killed = processes.one("valkey")
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: processes.maybe_one("valkey") not in (None, killed), "a new broker")
    job_id = api.submit(dataset_id, penalty=1.0)
    assert api.wait(job_id, "succeeded", "failed")["state"] == "succeeded"

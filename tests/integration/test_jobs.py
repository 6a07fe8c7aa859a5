"""Jobs through a live embedded service, on SQLite; `tests/faults` hurts the whole stack."""

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

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


def test_a_table_goes_in_and_a_network_comes_out(api: Any, small_table: np.ndarray) -> None:
    job_id = api.submit(api.upload(small_table), penalty=1.0)
    job = api.wait(job_id, "succeeded", "failed")
    assert (job["state"], job["attempt"], job["error"]) == ("succeeded", 1, None)
    assert job["progress"]["fraction"] <= 1
    precision = np.array(api.result(job_id)["precision"])
    np.testing.assert_array_equal(precision, precision.T)
    assert (np.diag(precision) > 0).all()


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
def test_a_worker_goes_on_after_its_broker_was_killed(
    api: Any, processes: Any, small_table: np.ndarray, wait_for: WaitFor
) -> None:
    dataset_id = api.upload(small_table)
    killed = processes.one("valkey")
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: processes.maybe_one("valkey") not in (None, killed), "a new broker")
    job_id = api.submit(dataset_id, penalty=1.0)
    assert api.wait(job_id, "succeeded", "failed")["state"] == "succeeded"

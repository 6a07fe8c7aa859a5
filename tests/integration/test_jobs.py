"""Jobs through a live embedded service, on SQLite; `tests/faults` hurts the whole stack."""

import os
import signal
from typing import Any

import numpy as np
import pytest

from tests.waiting import wait_for

pytestmark = pytest.mark.integration


def test_a_table_goes_in_and_a_network_comes_out(api: Any, small_table: np.ndarray) -> None:
    job_id = api.submit(api.upload(small_table), penalty=1.0)
    job = api.wait(job_id, "succeeded", "failed")
    assert (job["state"], job["attempt"], job["error"]) == ("succeeded", 1, None)
    assert job["progress"]["fraction"] <= 1
    precision = np.array(api.result(job_id)["precision"])
    np.testing.assert_array_equal(precision, precision.T)
    assert (np.diag(precision) > 0).all()


@pytest.mark.faults
def test_a_worker_goes_on_after_its_broker_was_killed(
    api: Any, processes: Any, small_table: np.ndarray
) -> None:
    dataset_id = api.upload(small_table)
    killed = processes.one("valkey")
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: processes.maybe_one("valkey") not in (None, killed), "a new broker")
    job_id = api.submit(dataset_id, penalty=1.0)
    assert api.wait(job_id, "succeeded", "failed")["state"] == "succeeded"

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


def test_completed_tables_have_the_digits_of_the_upload(api: Any, small_table: np.ndarray) -> None:
    dataset_id = api.upload(small_table)
    body = {
        "kind": "estimation",
        "dataset_id": dataset_id,
        "estimator": {"kind": "vnce", "penalty": 1.0},
        "imputations": 2,
    }
    job_id = api.http.post("/v1/jobs", json=body).raise_for_status().json()["id"]
    assert api.wait(job_id, "succeeded", "failed")["state"] == "succeeded"
    content = api.http.get(f"/v1/datasets/{dataset_id}/content").raise_for_status().text
    header, *rows = content.splitlines()
    answer = api.http.get(f"/v1/jobs/{job_id}/result/files/imputations-m.csv").raise_for_status()
    assert answer.text.splitlines()[0] == f"imputation,row,{header}"
    for line, before in zip(answer.text.splitlines()[1:], rows + rows, strict=True):
        for cell, old in zip(line.split(",")[2:], before.split(","), strict=True):
            assert cell == old or (old == "" and float(cell) >= 0)


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

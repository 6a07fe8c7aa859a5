"""A bootstrap whose resamples are shared by the workers of a live service."""

import csv
import io
import os
import signal
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from tests.integration.conftest import FINAL, Api
from tests.waiting import wait_for
from vnce_engine import TruncatedGaussianVNCE, bootstrap
from worker.embedded.running import RunningService

pytestmark = pytest.mark.integration

N_RESAMPLES = 24


def submit(api: Any, job_id: str, **choices: Any) -> str:
    body = {"kind": "bootstrap", "job_id": job_id, "n_resamples": N_RESAMPLES, "seed": 3, **choices}
    answer = api.http.post("/v1/jobs", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def parts_of(api: Any, job_id: str) -> list[dict[str, Any]]:
    query = {"parent_id": job_id, "limit": 100}
    page: list[dict[str, Any]] = api.http.get("/v1/jobs", params=query).json()["items"]
    return page


def file_of(api: Any, job_id: str, name: str) -> bytes:
    content: bytes = (
        api.http.get(f"/v1/jobs/{job_id}/result/files/{name}").raise_for_status().content
    )
    return content


@pytest.fixture(scope="module")
def estimation(live_service: RunningService, small_table: np.ndarray) -> str:
    """Return the id of an estimation that has succeeded."""
    api = Api(live_service.url)
    with api.http:
        job_id = api.submit(api.upload(small_table))
        assert api.wait(job_id, *FINAL)["state"] == "succeeded"
    return job_id


@pytest.fixture(scope="module")
def undisturbed(live_service: RunningService, estimation: str) -> str:
    """Return the id of a bootstrap that was let alone, and has ended."""
    api = Api(live_service.url)
    with api.http:
        job_id = submit(api, estimation)
        api.wait(job_id, *FINAL)
    return job_id


def test_two_workers_share_the_resamples_and_the_result_is_that_of_python(
    api: Any, estimation: str, undisturbed: str, small_table: np.ndarray
) -> None:
    job = api.job(undisturbed)
    assert (job["state"], job["error"], job["parts"]["n_total"]) == ("succeeded", None, 3)
    assert sorted(part["spec"]["label"] for part in parts_of(api, undisturbed)) == [
        "resamples 1 to 10",
        "resamples 11 to 20",
        "resamples 21 to 24",
    ]
    result = api.result(undisturbed)
    assert (result["n_requested"], result["n_ok"], result["reason"]) == (N_RESAMPLES,) * 2 + (None,)
    assert result["n_workers"] == 2
    assert result["bootstrapped_job_id"] == estimation

    model = TruncatedGaussianVNCE(random_state=7).fit(small_table)
    found = bootstrap(model, small_table, N_RESAMPLES, random_state=3)
    by_pair = {(edge["source"], edge["target"]): edge for edge in result["edges"]}
    for k, (i, j) in enumerate(found.pairs):
        edge = by_pair[f"v{i}", f"v{j}"]
        assert edge["inclusion"] == pytest.approx(found.inclusion[k])
        for name, spread in (
            ("partial_correlation", found.partial_correlation),
            ("debiased", found.debiased),
        ):
            assert edge[name]["mean"] == pytest.approx(spread.mean[k], abs=1e-6)
            assert edge[name]["lower"] == pytest.approx(spread.lower[k], abs=1e-6)
    assert result["rank_correlation"] == pytest.approx(found.rank_correlation, abs=1e-6)


def test_its_files_have_a_line_each_pair(api: Any, undisturbed: str) -> None:
    result = api.result(undisturbed)
    assert {file["name"] for file in result["files"]} == {
        "bootstrap.csv",
        "bootstrap.parquet",
        "report.html",
        "figures/bootstrap.svg",
        "figures/bootstrap.png",
        "figures/bootstrap.pdf",
    }
    lines = list(csv.DictReader(io.StringIO(file_of(api, undisturbed, "bootstrap.csv").decode())))
    table = parquet.read_table(io.BytesIO(file_of(api, undisturbed, "bootstrap.parquet")))
    assert len(lines) == len(table) == len(result["edges"]) == 10
    for line, row, edge in zip(lines, table.to_pylist(), result["edges"], strict=True):
        assert (line["source"], line["target"]) == (edge["source"], edge["target"])
        assert row["debiased_upper"] == edge["debiased"]["upper"] == float(line["debiased_upper"])
        assert row["partial_correlation_n"] == edge["partial_correlation"]["n"]


@pytest.mark.faults
def test_a_part_whose_process_is_killed_is_done_again_with_the_same_resamples(
    api: Any, processes: Any, estimation: str, undisturbed: str
) -> None:
    job_id = submit(api, estimation)

    def running() -> bool:
        return any(part["state"] == "running" for part in parts_of(api, job_id))

    wait_for(running, "a part to be at work")
    os.kill(processes.busy_child(), signal.SIGKILL)
    job = api.wait(job_id, *FINAL)
    assert job["state"] == "succeeded"
    assert sorted(part["attempt"] for part in parts_of(api, job_id)) == [1, 1, 2]
    assert file_of(api, job_id, "bootstrap.csv") == file_of(api, undisturbed, "bootstrap.csv")


def test_a_cancelled_bootstrap_stops_its_parts(api: Any, estimation: str) -> None:
    job_id = submit(api, estimation, n_resamples=400)
    wait_for(lambda: parts_of(api, job_id), "the parts")
    api.cancel(job_id)
    assert api.job(job_id)["state"] == "cancelled"
    wait_for(
        lambda: all(part["state"] in FINAL for part in parts_of(api, job_id)), "all parts to end"
    )
    assert "cancelled" in {part["state"] for part in parts_of(api, job_id)}


def test_the_data_set_stays_as_long_as_the_bootstrap_does(
    api: Any, estimation: str, undisturbed: str
) -> None:
    dataset = api.job(estimation)["spec"]["dataset_id"]
    assert api.job(undisturbed)["links"]["dataset"].endswith(dataset)
    listed = api.http.get("/v1/jobs", params={"dataset_id": dataset, "kind": "bootstrap"}).json()
    assert undisturbed in {job["id"] for job in listed["items"]}


def test_what_cannot_be_bootstrapped_is_refused_by_name(
    api: Any, undisturbed: str, small_table: np.ndarray
) -> None:
    def refused(job_id: str) -> Any:
        body = {"kind": "bootstrap", "job_id": job_id}
        answer = api.http.post("/v1/jobs", json=body)
        assert answer.status_code == 422
        return answer.json()

    assert refused(undisturbed)["detail"].endswith(
        "is of kind `bootstrap`; only a network can be bootstrapped."
    )
    stable = api.submit(
        api.upload(small_table), penalty_kind="l1", selection="stability", n_subsamples=4
    )
    assert api.wait(stable, *FINAL)["state"] == "succeeded"
    problem = refused(stable)
    assert "was chosen by half-samples" in problem["detail"]
    assert problem["errors"][0]["pointer"] == "/job_id"

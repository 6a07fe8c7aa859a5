"""An experiment whose parts are shared by the workers of a live service."""

import os
import signal
from collections import Counter
from typing import Any

import httpx
import pytest

from tests.integration.conftest import FINAL, Api
from tests.result_files import figure_files
from tests.waiting import wait_for
from worker.embedded.running import RunningService

pytestmark = pytest.mark.integration

EXPERIMENT = {"name": "mixture-population", "n_truths": 60, "sample_sizes": [100, 1000]}


def submit(api: Any, **experiment: Any) -> str:
    body = {"kind": "experiment", "experiment": experiment, "scale": "quick", "seed": 3}
    answer = api.http.post("/v1/jobs", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def parts_of(api: Any, job_id: str) -> list[dict[str, Any]]:
    page: list[dict[str, Any]] = api.http.get(
        "/v1/jobs", params={"parent_id": job_id, "limit": 100}
    ).json()["items"]
    return page


def data_of(api: Any, job_id: str) -> bytes:
    answer: httpx.Response = api.http.get(f"/v1/jobs/{job_id}/result/files/data/rows.csv")
    return answer.raise_for_status().content


@pytest.fixture(scope="module")
def undisturbed(live_service: RunningService) -> str:
    """Return the id of an experiment that was let alone, and has ended."""
    api = Api(live_service.url)
    with api.http:
        job_id = submit(api, **EXPERIMENT)
        api.wait(job_id, *FINAL)
    return job_id


def test_two_workers_each_do_part_of_an_experiment_and_its_result_is_one(
    api: Any, undisturbed: str
) -> None:
    job_id = undisturbed
    job = api.job(job_id)
    assert (job["state"], job["error"], job["attempt"]) == ("succeeded", None, 1)
    assert job["parts"] == {
        "n_total": 6,
        "n_queued": 0,
        "n_running": 0,
        "n_succeeded": 6,
        "n_failed": 0,
        "n_cancelled": 0,
    }
    results = [api.result(part["id"]) for part in parts_of(api, job_id)]
    shares = Counter(result["worker"] for result in results)
    assert len(shares) == 2
    result = api.result(job_id)
    assert (result["n_parts"], result["n_succeeded"], result["n_workers"]) == (6, 6, 2)
    assert result["failures"] == []
    # A header, and a line for each true value, sample size and estimator.
    assert len(data_of(api, job_id).splitlines()) == 1 + 60 * 2 * 3
    assert {file["name"] for file in result["files"]} >= {
        *figure_files("mixture-population"),
        "tables/errors.csv",
    }


@pytest.mark.faults
def test_a_part_whose_process_is_killed_is_done_again_with_the_same_data(
    api: Any, processes: Any, undisturbed: str
) -> None:
    job_id = submit(api, **EXPERIMENT)

    def running() -> bool:
        return any(part["state"] == "running" for part in parts_of(api, job_id))

    wait_for(running, "a part to be at work")
    os.kill(processes.busy_child(), signal.SIGKILL)
    job = api.wait(job_id, *FINAL)
    assert job["state"] == "succeeded"
    assert sorted(part["attempt"] for part in parts_of(api, job_id)) == [1, 1, 1, 1, 1, 2]
    assert data_of(api, job_id) == data_of(api, undisturbed)


def test_a_cancelled_experiment_stops_its_parts(api: Any) -> None:
    job_id = submit(api, name="mixture-population", n_truths=200, sample_sizes=[5000])
    wait_for(lambda: parts_of(api, job_id), "the parts")
    api.cancel(job_id)
    assert api.job(job_id)["state"] == "cancelled"

    def all_ended() -> bool:
        return all(part["state"] in FINAL for part in parts_of(api, job_id))

    wait_for(all_ended, "all parts to end")
    # Some may have ended before; the last of twenty had not begun.
    states = {part["state"] for part in parts_of(api, job_id)}
    assert "cancelled" in states <= {"cancelled", "succeeded"}


def test_a_simulated_table_is_estimated_and_scored_against_another_graph(api: Any) -> None:
    body = {"kind": "simulation", "graph": "ring", "n_variables": 6, "n_rows": 300, "seed": 1}
    made = api.http.post("/v1/jobs", json={**body, "missing_fraction": 0.2}).json()["id"]
    assert api.wait(made, *FINAL)["error"] is None
    simulation = api.result(made)
    truth = api.http.get(f"/v1/datasets/{simulation['dataset_id']}/ground-truth").json()
    assert truth["n_edges"] == simulation["n_edges"] == 6
    estimation = api.submit(simulation["dataset_id"], penalty=1.0)
    api.wait(estimation, *FINAL)
    scores = {score["score"]: score["auc"] for score in api.result(estimation)["scores"]}
    edges = [{"source": edge["source"], "target": edge["target"]} for edge in truth["edges"]]
    same = {"kind": "scoring", "job_id": estimation, "ground_truth": None}
    other = {**same, "ground_truth": {"kind": "edges", "edges": edges[:1]}}
    ids = [api.http.post("/v1/jobs", json=body).json()["id"] for body in (same, other)]
    for job_id in ids:
        assert api.wait(job_id, *FINAL)["error"] is None
    again, against_other = (api.result(job_id) for job_id in ids)
    assert {score["score"]: score["auc"] for score in again["scores"]} == scores
    assert against_other["n_true_edges"] == 1
    roc = api.http.get(f"/v1/jobs/{ids[1]}/result/roc").json()
    assert (roc["n_true_edges"], roc["n_pairs"]) == (1, 15)
    stranger = {"source": "nobody", "target": edges[0]["target"]}
    refused = api.http.post(
        "/v1/jobs", json={**same, "ground_truth": {"kind": "edges", "edges": [stranger]}}
    )
    assert refused.json()["errors"][0]["pointer"] == "/ground_truth/edges/0/source"


def test_what_a_kind_of_job_does_not_have_is_said(api: Any) -> None:
    body = {"kind": "simulation", "graph": "ring", "n_variables": 4, "n_rows": 30, "seed": 1}
    made = api.http.post("/v1/jobs", json=body).json()["id"]
    api.wait(made, *FINAL)
    graph = api.http.get(f"/v1/jobs/{made}/result/graph")
    assert graph.status_code == 404
    assert "has no graph" in graph.json()["detail"]
    scoring = api.http.post("/v1/jobs", json={"kind": "scoring", "job_id": made})
    assert (scoring.status_code, scoring.json()["code"]) == (422, "incompatible-model")

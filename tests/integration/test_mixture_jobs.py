"""The mixture through a live service: one column up, theta and every value's component back."""

import csv
import io
import math
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.integration

N, SIGMA_1, THETA = 2_000, 0.5, 2.0


@pytest.fixture(scope="module")
def column() -> np.ndarray:
    """Return (n, 1) values of the unnormalised mixture, one in fifty missing."""
    rng = np.random.default_rng(20261128)
    sigma = np.where(rng.random(N) < SIGMA_1 / (SIGMA_1 + THETA), SIGMA_1, THETA)
    x = sigma * rng.normal(size=N)
    x[::50] = np.nan
    return x[:, None]


def submit(api: Any, dataset_id: str, estimator: dict[str, Any]) -> str:
    body = {
        "kind": "estimation",
        "dataset_id": dataset_id,
        "model": {"kind": "mixture", "sigma_1": SIGMA_1},
        "estimator": estimator,
        "seed": 7,
    }
    answer = api.http.post("/v1/jobs", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def test_a_column_goes_in_and_all_estimators_tell_the_same_mixture(
    api: Any, column: np.ndarray
) -> None:
    # A blank line would be no row: a missing cell of a single column has to be spelt.
    text = "x\n" + "\n".join("NA" if np.isnan(v) else repr(float(v)) for v in column[:, 0])
    dataset_id = str(api.http.post("/v1/datasets", content=text.encode()).json()["id"])
    estimators: dict[str, dict[str, Any]] = {
        "joint": {"kind": "vnce"},
        "em": {"kind": "vnce", "climb": "exact-em"},
        "nce": {"kind": "nce"},
        "mle": {"kind": "mle"},
    }
    jobs = {name: submit(api, dataset_id, body) for name, body in estimators.items()}
    results = {}
    for name, job_id in jobs.items():
        job = api.wait(job_id, "succeeded", "failed")
        assert job["state"] == "succeeded", job["error"]
        results[name] = api.result(job_id)
    true_c = 0.5 * math.log(2 * math.pi) + math.log(SIGMA_1 + THETA)
    for result in results.values():
        assert result["kind"] == "mixture"
        assert result["convergence"]["converged"]
        assert result["counts"]["n_missing"] == N // 50
        for key, truth in (("theta", THETA), ("log_partition", true_c)):
            estimate = result[key]
            assert abs(estimate["value"] - truth) < 5 * estimate["standard_error"]
    # Theorem 2 and Corollary 1: three ways to one maximum, each to a hundredth of its error.
    error = results["nce"]["theta"]["standard_error"]
    found = [results[name]["theta"]["value"] for name in ("joint", "em", "nce")]
    assert max(found) - min(found) < 0.02 * error

    address = f"/v1/jobs/{jobs['joint']}/result"
    table = api.http.get(f"{address}/files/responsibilities.csv").raise_for_status().text
    rows = [int(line["row"]) for line in csv.DictReader(io.StringIO(table))]
    assert rows == [row for row in range(1, N + 1) if row % 50 != 1]
    assert api.http.get(f"{address}/files/figures/density.svg").text.startswith("<?xml")
    assert api.http.get(f"{address}/files/objective.csv").text.startswith("iteration,objective")
    # It is no network, and says so.
    for part in ("graph", "precision", "roc"):
        answer = api.http.get(f"{address}/{part}")
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.status_code in (404, 409)
    scoring = {
        "kind": "scoring",
        "job_id": jobs["mle"],
        "ground_truth": {"kind": "edges", "edges": []},
    }
    refused = api.http.post("/v1/jobs", json=scoring)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/job_id")

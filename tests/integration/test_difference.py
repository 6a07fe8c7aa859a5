"""Networks compared by a live service: of two data sets, and of groups of one."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.integration.conftest import FINAL, Api
from vnce_engine import TruncatedGaussianVNCE, difference, group_difference
from vnce_engine.simulate import hub_precision, sample_truncated_gaussian
from worker.embedded.running import RunningService

pytestmark = pytest.mark.integration

NAMES = [f"v{i}" for i in range(5)]


def upload(api: Any, frame: pd.DataFrame) -> str:
    content = frame.to_csv(index=False).encode()
    answer = api.http.post("/v1/datasets", content=content, params={"name": "table.csv"})
    return str(answer.raise_for_status().json()["id"])


def estimate(api: Any, dataset: str, **fields: Any) -> str:
    body = {
        "kind": "estimation",
        "dataset_id": dataset,
        "estimator": {"kind": "vnce", "penalty": 1.0},
        "model": {"kind": "truncated-gaussian", "linear": "zero"},
    }
    answer = api.http.post("/v1/jobs", json=body | fields)
    return str(answer.raise_for_status().json()["id"])


def submit(api: Any, **fields: Any) -> Any:
    return api.http.post("/v1/jobs", json={"kind": "difference", "seed": 3, **fields})


def finished(api: Any, **fields: Any) -> Any:
    answer = submit(api, **fields)
    assert answer.status_code == 202, answer.text
    return api.wait(answer.json()["id"], *FINAL)


@pytest.fixture(scope="module")
def frames(small_table: np.ndarray) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the two tables, columns of the second in another order."""
    frame = pd.DataFrame(small_table, columns=NAMES)
    return frame.iloc[::2], frame.iloc[1::2][NAMES[::-1]]


@pytest.fixture(scope="module")
def networks(
    live_service: RunningService, frames: tuple[pd.DataFrame, pd.DataFrame]
) -> tuple[str, str]:
    """Return the ids of estimations of two data sets."""
    api = Api(live_service.url)
    with api.http:
        one, other = (estimate(api, upload(api, frame)) for frame in frames)
        assert {api.wait(job, *FINAL)["state"] for job in (one, other)} == {"succeeded"}
    return one, other


@pytest.fixture(scope="module")
def grouped(
    live_service: RunningService, frames: tuple[pd.DataFrame, pd.DataFrame]
) -> tuple[str, pd.DataFrame]:
    """Return the id of an estimation of both tables, and what was uploaded."""
    one, other = frames
    frame = pd.concat([one.assign(group=0.0), other.assign(group=1.0)])
    frame.iloc[:2, -1] = np.nan
    frame["third"] = np.arange(len(frame)) % 3
    api = Api(live_service.url)
    with api.http:
        job = estimate(api, upload(api, frame), variables=NAMES)
        assert api.wait(job, *FINAL)["state"] == "succeeded"
    return job, frame


def fit(frame: pd.DataFrame) -> TruncatedGaussianVNCE:
    return TruncatedGaussianVNCE(penalty=1.0, linear="zero").fit(frame)


def assert_same(result: Any, found: Any, names: list[str]) -> None:
    by_pair = {(edge["source"], edge["target"]): edge for edge in result["edges"]}
    for k, (i, j) in enumerate(found.pairs):
        edge = by_pair[names[i], names[j]]
        for field in ("difference", "z", "lower", "q_value"):
            # The service chooses nothing here; digits may differ by the order of threads.
            assert edge[field] == pytest.approx(getattr(found, field)[k], abs=1e-6)
    for field, test in (("largest_z", found.largest), ("sum_of_squares", found.sum_of_squares)):
        assert result[field]["statistic"] == pytest.approx(test.statistic, rel=1e-6)
        assert result[field]["p_value"] == test.p_value


def test_two_results_are_compared_at_once(
    api: Any, networks: tuple[str, str], frames: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    one, other = networks
    job = finished(api, job_id=one, other_job_id=other)
    assert (job["state"], job["parts"], job["spec"]["n_permutations"]) == ("succeeded", None, 0)
    result = api.result(job["id"])
    assert_same(result, difference(*map(fit, frames)), NAMES)
    assert [result[side]["job_id"] for side in ("first", "second")] == [one, other]
    swapped = api.result(finished(api, job_id=other, other_job_id=one)["id"])
    signs = {frozenset((e["source"], e["target"])): e["z"] for e in swapped["edges"]}
    for edge in result["edges"]:
        assert signs[frozenset((edge["source"], edge["target"]))] == -edge["z"]


def test_permutations_of_two_data_sets_are_those_of_python(
    api: Any, networks: tuple[str, str], frames: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    one, other = networks
    job = finished(api, job_id=one, other_job_id=other, n_permutations=7)
    assert (job["state"], job["parts"]["n_succeeded"]) == ("succeeded", 2)
    models = tuple(map(fit, frames))
    found = difference(*models, frames, n_permutations=7, random_state=3)
    assert_same(api.result(job["id"]), found, NAMES)


def test_two_workers_share_the_permutations_of_groups(
    api: Any, grouped: tuple[str, pd.DataFrame]
) -> None:
    job_id, frame = grouped
    job = finished(api, job_id=job_id, by=" group ", n_permutations=12)
    assert (job["state"], job["parts"]["n_total"], job["spec"]["by"]) == ("succeeded", 3, "group")
    listed = api.http.get("/v1/jobs", params={"parent_id": job["id"]}).json()["items"]
    assert {part["kind"] for part in listed} == {"difference-part"}
    result = api.result(job["id"])
    assert (result["n_ok"], result["reason"], result["n_unlabelled"]) == (12, None, 2)
    assert result["n_workers"] == 2
    groups = frame["group"].to_numpy()
    same = group_difference(fit(frame[NAMES]), frame[NAMES], groups, 12, random_state=3)
    assert_same(result, same, NAMES)
    files = {file["name"] for file in result["files"]}
    assert {"difference.csv", "report.html", "figures/difference.png"} <= files


def test_what_cannot_be_compared_is_refused_by_what_differs(
    api: Any,
    networks: tuple[str, str],
    grouped: tuple[str, pd.DataFrame],
    frames: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    one, other = networks
    first, second = frames
    dataset = upload(api, second)
    others = {
        "lacks: v4": estimate(api, dataset, variables=NAMES[:4]),
        "transforms differ: `none` and `sqrt`": estimate(
            api,
            dataset,
            model={"kind": "truncated-gaussian", "transform": "sqrt", "linear": "zero"},
        ),
        "linear terms differ: `zero` and `free`": estimate(
            api, dataset, model={"kind": "truncated-gaussian", "linear": "free"}
        ),
        "models differ": estimate(api, dataset, model={"kind": "gaussian"}),
        "no standard errors": estimate(
            api, dataset, model={"kind": "gaussian"}, estimator={"kind": "gaussian-em"}
        ),
        "of the same table": estimate(api, upload(api, first)),
    }
    for message, job in others.items():
        assert api.wait(job, *FINAL)["state"] == "succeeded"
        answer = submit(api, job_id=one, other_job_id=job)
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (422, "incompatible-model"), problem
        assert message in problem["detail"]
        assert problem["errors"][0]["pointer"] == "/other_job_id"
    for body, status, message in (
        ({"job_id": one}, 422, "either `other_job_id` or `by`"),
        ({"job_id": one, "other_job_id": other, "by": "v0"}, 422, "either `other_job_id` or"),
        ({"job_id": grouped[0], "by": "v0"}, 422, "v0 is a variable of the network"),
        ({"job_id": grouped[0], "by": "no"}, 422, "no column of this name"),
        ({"job_id": "job_0", "by": "no"}, 404, "No job has this identifier"),
    ):
        answer = submit(api, **body)
        assert (answer.status_code, message in answer.text) == (status, True), answer.text
    answer = submit(api, job_id=one, other_job_id="job_0")
    assert answer.status_code == 404
    assert [item["pointer"] for item in answer.json()["errors"]] == ["/other_job_id"]


def test_a_linear_term_that_only_debiased_estimates_have_is_a_difference_of_models(
    api: Any, networks: tuple[str, str]
) -> None:
    rng = np.random.default_rng(22)
    X = sample_truncated_gaussian(
        hub_precision(5, rng), 400, rng, linear=rng.uniform(-0.4, 0.75, 5)
    )
    other = estimate(
        api,
        upload(api, pd.DataFrame(X, columns=NAMES)),
        model={"kind": "truncated-gaussian", "linear": "auto"},
    )
    assert api.wait(other, *FINAL)["state"] == "succeeded"
    result = api.http.get(f"/v1/jobs/{other}/result").json()
    assert (result["linear"]["choice"], result["uncertainty"]["linear"]) == ("zero", "free")
    answer = submit(api, job_id=networks[0], other_job_id=other)
    assert answer.status_code == 422
    assert "linear terms differ: `zero` and `free`" in answer.json()["detail"]


def test_a_column_of_three_values_ends_the_job_before_any_fit(
    api: Any, grouped: tuple[str, pd.DataFrame]
) -> None:
    job = finished(api, job_id=grouped[0], by="third")
    assert (job["state"], job["error"]["code"]) == ("failed", "incompatible-model")
    assert "third has 3 different values (0, 1, 2)" in job["error"]["detail"]
    assert job["parts"] is None


def test_clusters_of_an_estimation_are_those_of_its_groups(
    api: Any, small_table: np.ndarray
) -> None:
    rows = np.arange(len(small_table)) // 2
    frame = pd.DataFrame(small_table[rows], columns=NAMES)
    patient, group = np.array([f"patient {row}" for row in rows]), rows % 2
    told = frame.assign(patient=patient, group=group, visit=np.arange(len(rows)) % 2)
    params = {"name": "visits.csv", "labels": "patient"}
    content = told.to_csv(index=False).encode()
    answer = api.http.post("/v1/datasets", content=content, params=params)
    dataset = answer.raise_for_status().json()["id"]
    job = estimate(api, dataset, variables=NAMES, cluster="patient")
    assert api.wait(job, *FINAL)["state"] == "succeeded"
    assert api.result(job)["counts"]["n_clusters"] == len(np.unique(rows))
    result = api.result(finished(api, job_id=job, by="group", n_permutations=0)["id"])
    model = TruncatedGaussianVNCE(penalty=1.0, linear="zero").fit(frame, clusters=patient)
    found = group_difference(model, frame, group, 0, random_state=3, clusters=patient)
    assert_same(result, found, NAMES)
    split = finished(api, job_id=job, by="visit")
    assert split["state"] == "failed"
    assert "have rows in both groups" in split["error"]["detail"]

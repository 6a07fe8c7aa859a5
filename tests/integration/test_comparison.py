"""A comparison whose models are shared by the workers of a live service."""

import csv
import io
import os
import signal
from typing import Any

import numpy as np
import pytest

from tests.integration.conftest import FINAL, Api
from tests.waiting import wait_for
from vnce_engine import (
    GaussianEM,
    TruncatedGaussianScoreMatching,
    TruncatedGaussianVNCE,
    compare,
)
from worker.embedded.running import RunningService

pytestmark = pytest.mark.integration

SPECIFICATIONS = [
    {
        "name": "truncated",
        "model": {"kind": "truncated-gaussian", "linear": "zero"},
        "estimator": {"kind": "vnce", "penalty": 0.3},
    },
    {"name": "Gaussian", "model": {"kind": "gaussian"}, "estimator": {"kind": "gaussian-em"}},
    {
        "name": "matched",
        "model": {"kind": "truncated-gaussian", "linear": "zero"},
        "estimator": {"kind": "score-matching"},
    },
]


def submit(api: Any, dataset_id: str, specifications: list[Any], **choices: Any) -> str:
    body = {"kind": "comparison", "dataset_id": dataset_id, "specifications": specifications}
    answer = api.http.post("/v1/jobs", json=body | {"seed": 3, "n_folds": 3} | choices)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def parts_of(api: Any, job_id: str) -> list[dict[str, Any]]:
    page: list[dict[str, Any]] = api.http.get("/v1/jobs", params={"parent_id": job_id}).json()[
        "items"
    ]
    return page


def file_of(api: Any, job_id: str, name: str) -> bytes:
    answer = api.http.get(f"/v1/jobs/{job_id}/result/files/{name}").raise_for_status()
    content: bytes = answer.content
    return content


@pytest.fixture(scope="module")
def dataset(live_service: RunningService, small_table: np.ndarray) -> str:
    """Return the id of the uploaded table."""
    api = Api(live_service.url)
    with api.http:
        return api.upload(small_table)


@pytest.fixture(scope="module")
def undisturbed(live_service: RunningService, dataset: str) -> str:
    """Return the id of a comparison that was let alone, and has ended."""
    api = Api(live_service.url)
    with api.http:
        job_id = submit(api, dataset, SPECIFICATIONS)
        api.wait(job_id, *FINAL)
    return job_id


def test_each_model_is_a_part_and_the_result_is_that_of_python(
    api: Any, undisturbed: str, small_table: np.ndarray
) -> None:
    job = api.job(undisturbed)
    assert (job["state"], job["error"], job["parts"]["n_total"]) == ("succeeded", None, 3)
    result = api.result(undisturbed)
    found = compare(
        {
            "truncated": TruncatedGaussianVNCE(linear="zero", penalty=0.3, random_state=3),
            "Gaussian": GaussianEM(random_state=3),
            "matched": TruncatedGaussianScoreMatching(linear="zero", random_state=3),
        },
        small_table,
        n_folds=3,
        random_state=3,
    )
    assert [one["name"] for one in result["models"]] == [model.name for model in found.models]
    for one, model in zip(result["models"], found.models, strict=True):
        assert one["reason"] == model.held_out.reason
        for field, value in (
            ("log_density", model.log_density),
            ("standard_error", model.standard_error),
            ("behind", model.behind),
            ("behind_standard_error", model.behind_error),
        ):
            assert (one[field] is None) == np.isnan(value)
            assert one[field] is None or one[field] == pytest.approx(value, abs=1e-6)
    for said, pairs in ((result["agreed"], found.agreed), (result["disputed"], found.disputed)):
        assert {(pair["source"], pair["target"]) for pair in said} == {
            (f"v{pair.source}", f"v{pair.target}") for pair in pairs
        }
    assert result["models"][0]["behind"] == 0


def test_its_files_have_a_line_each_model_and_each_pair(api: Any, undisturbed: str) -> None:
    result = api.result(undisturbed)
    assert {file["name"] for file in result["files"]} == {
        "comparison.csv",
        "pairs.csv",
        "report.html",
        "figures/comparison.svg",
        "figures/comparison.png",
        "figures/comparison.pdf",
    }
    lines = list(csv.DictReader(io.StringIO(file_of(api, undisturbed, "comparison.csv").decode())))
    assert [line["name"] for line in lines] == [model["name"] for model in result["models"]]
    assert float(lines[0]["log_density"]) == result["models"][0]["log_density"]
    pairs = list(csv.DictReader(io.StringIO(file_of(api, undisturbed, "pairs.csv").decode())))
    assert len(pairs) == result["n_pairs"] == 10
    by_pair = {(line["source"], line["target"]): line for line in pairs}
    for pair in result["agreed"] + result["disputed"]:
        line = by_pair[pair["source"], pair["target"]]
        for edge in pair["edges"]:
            assert line[f"{edge['model']} selected"] == str(edge["selected"]).lower()
    part = parts_of(api, undisturbed)[0]["id"]
    assert {file["name"] for file in api.result(part)["files"]} == {"held-out.npy", "pairs.parquet"}


def test_equal_specifications_differ_by_nothing(api: Any, dataset: str) -> None:
    gaussian = {"model": {"kind": "gaussian"}, "estimator": {"kind": "gaussian-em"}}
    job_id = submit(api, dataset, [gaussian, gaussian])
    assert api.wait(job_id, *FINAL)["state"] == "succeeded"
    result = api.result(job_id)
    assert [model["name"] for model in result["models"]] == [
        "gaussian:gaussian-em",
        "gaussian:gaussian-em (2)",
    ]
    assert {(m["behind"], m["behind_standard_error"]) for m in result["models"]} == {(0, 0)}
    assert not result["disputed"]


def test_one_failed_specification_does_not_sink_the_others(api: Any) -> None:
    # Only two rows are complete; of some columns alone that is first seen by the fit.
    table = np.random.default_rng(4).exponential(size=(60, 5))
    table[2::2, 0], table[3::2, 1] = np.nan, np.nan
    gaussian = {"kind": "gaussian"}
    specifications = [
        {"name": "refused", "model": gaussian, "estimator": {"kind": "nce", "imputation": "drop"}},
        {
            "name": "fitted",
            "model": gaussian,
            "estimator": {"kind": "gaussian-em", "penalty": 0.1},
        },
    ]
    variables = ["v0", "v1", "v2", "v3"]
    job_id = submit(api, api.upload(table), specifications, variables=variables)
    job = api.wait(job_id, *FINAL)
    assert job["state"] == "succeeded", job["error"]
    result = api.result(job_id)
    assert [model["name"] for model in result["models"]] == ["fitted", "refused"]
    [failure] = result["failures"]
    assert (failure["label"], failure["error"]["code"]) == ("refused", "incompatible-model")
    failed = result["models"][1]
    assert (failed["fit"], failed["reason"]) == (None, failure["error"]["detail"])


@pytest.mark.faults
def test_a_part_whose_process_is_killed_is_done_again_to_the_same_result(
    api: Any, processes: Any, dataset: str, undisturbed: str
) -> None:
    job_id = submit(api, dataset, SPECIFICATIONS)

    def running() -> bool:
        return any(part["state"] == "running" for part in parts_of(api, job_id))

    wait_for(running, "a part to be at work")
    os.kill(processes.busy_child(), signal.SIGKILL)
    assert api.wait(job_id, *FINAL)["state"] == "succeeded"
    again, before = api.result(job_id)["models"], api.result(undisturbed)["models"]
    for one, other in zip(again, before, strict=True):
        assert one["name"] == other["name"]
        # Within what a fit that goes on from its last estimate may differ by.
        assert one["log_density"] is None or one["log_density"] == pytest.approx(
            other["log_density"], abs=0.01 * other["standard_error"]
        )


def test_a_cancelled_comparison_stops_its_parts(api: Any, dataset: str) -> None:
    slow = [{"estimator": {"kind": "vnce", "noise_ratio": 100, "tol": 1e-6}}] * 12
    job_id = submit(api, dataset, slow, n_folds=20)
    wait_for(lambda: parts_of(api, job_id), "the parts")
    api.cancel(job_id)
    wait_for(
        lambda: all(part["state"] in FINAL for part in parts_of(api, job_id)), "all parts to end"
    )
    assert "cancelled" in {part["state"] for part in parts_of(api, job_id)}
    assert api.job(job_id)["state"] == "cancelled"

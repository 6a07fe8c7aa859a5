"""Comparisons as requests: what each specification becomes, and where a refusal says it stands."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

TABLE = "x,y\n" + "\n".join(f"{row % 7},{(row * row) % 5}" for row in range(60))
SIGNED = "x,y\n" + "\n".join(f"{row % 7 - 3},{(row * row) % 5}" for row in range(60))
GAUSSIAN = {"model": {"kind": "gaussian"}, "estimator": {"kind": "gaussian-em"}}


def submit(client: TestClient, table: str, specifications: list[Any], **choices: Any) -> Any:
    dataset_id = client.post("/v1/datasets", content=table.encode()).json()["id"]
    body = {"kind": "comparison", "dataset_id": dataset_id, "specifications": specifications}
    return client.post("/v1/jobs", json=body | choices)


def refused(client: TestClient, table: str, specifications: list[Any]) -> list[tuple[str, Any]]:
    """Return the places that a refusal names, with the column."""
    answer = submit(client, table, specifications)
    assert answer.status_code == 422, answer.text
    return [(item["pointer"], item["column"]) for item in answer.json()["errors"]]


def test_a_job_has_every_choice_made_and_every_specification_a_name(client: TestClient) -> None:
    named = {**GAUSSIAN, "name": "mine"}
    options = {"kind": "vnce", "penalties": [0.1, 0.3], "penalty_kind": "l1", "max_iter": None}
    many = {"model": {"kind": "gaussian", "transform": "rank-normal"}, "estimator": options}
    answer = submit(client, TABLE, [{}, {}, GAUSSIAN, named, many], seed=None)
    assert answer.status_code == 202, answer.text
    spec = answer.json()["spec"]
    assert [one["name"] for one in spec["specifications"]] == [
        "truncated-gaussian:vnce",
        "truncated-gaussian:vnce (2)",
        "gaussian:gaussian-em",
        "mine",
        "gaussian:vnce:transform=rank-normal:penalty_kind=l1:penalties=0.1,0.3",
    ]
    assert spec["variables"] == ["x", "y"]
    assert isinstance(spec["seed"], int)
    assert {one["estimator"]["kind"] for one in spec["specifications"]} == {"vnce", "gaussian-em"}
    assert answer.json()["links"]["dataset"].endswith(spec["dataset_id"])


@pytest.mark.parametrize(
    ("specifications", "pointer"),
    [
        ([{}], "/specifications"),
        ([{}] * 13, "/specifications"),
        ([{}, {}, {}, {"estimator": {"kind": "magic"}}], "/specifications/3/estimator/kind"),
        ([{}, {"model": {"kind": "mixture"}}], "/specifications/1/model/kind"),
        ([{}, {"estimator": {"kind": "gaussian-em"}}], "/specifications/1/model/kind"),
        ([{}, {"estimator": {"kind": "vnce", "tol": 2.0}}], "/specifications/1/estimator/tol"),
        ([{"typo": 1}, {}], "/specifications/0/typo"),
        ([{"name": "a"}, {}, {"name": "a"}], "/specifications/0/name"),
    ],
)
def test_a_refusal_names_the_specification(
    client: TestClient, specifications: list[Any], pointer: str
) -> None:
    assert refused(client, TABLE, specifications)[0][0] == pointer


def test_what_speaks_against_all_is_said_once_and_else_where_it_stands(client: TestClient) -> None:
    assert refused(client, SIGNED, [{}, GAUSSIAN]) == [("/specifications/0", "x")]
    assert refused(client, SIGNED, [{}, {}]) == [(None, "x")]
    assert refused(client, "x,y\n" + "1,2\n" * 20, [GAUSSIAN, GAUSSIAN]) == [
        (None, "x"),
        (None, "y"),
    ]


def test_there_are_no_more_folds_than_rows(client: TestClient) -> None:
    table = "x,y\n" + "\n".join(f"{row % 7},{row % 5}" for row in range(15)) + "\n,"
    answer = submit(client, table, [{}, {}], n_folds=16)
    assert [item["pointer"] for item in answer.json()["errors"]] == ["/n_folds"]
    assert submit(client, table, [{}, {}], n_folds=15).status_code == 202


def test_a_plan_tells_each_warning_once(client: TestClient) -> None:
    gaps = TABLE + "\n,1\n2,"
    dataset_id = client.post("/v1/datasets", content=gaps.encode()).json()["id"]
    body = {
        "kind": "comparison",
        "dataset_id": dataset_id,
        "specifications": [{}, {}, GAUSSIAN],
        "variables": ["y", "x"],
    }
    plan = client.post("/v1/jobs:validate", json=body).json()
    meanings = [w["message"] for w in plan["warnings"] if w["code"] == "missing-cells"]
    assert len(meanings) == len(set(meanings)) == 2  # completely at random; at random
    assert plan["spec"]["variables"] == ["x", "y"]

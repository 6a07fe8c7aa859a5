"""The mixture as a job: which bodies it has, what is refused, what a plan says."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from service.jobs.specs import JobCreate, spec_of
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.specs.mixture import MixtureEstimationSpec

ONE_COLUMN = "x\n" + "\n".join(["1.5", "-0.2", "NA", "2.5", "-3", "0.7", "1.1", "NA", "0.4"])
TWO_COLUMNS = "x,y\n" + "\n".join(f"{row - 4.5},{row % 3}" for row in range(9))
MIXTURE = {"kind": "mixture"}


def upload(client: TestClient, table: str) -> str:
    return str(client.post("/v1/datasets", content=table.encode()).json()["id"])


def body(dataset_id: str, **choices: Any) -> dict[str, Any]:
    return {"kind": "estimation", "dataset_id": dataset_id, "model": MIXTURE, **choices}


def reasons(client: TestClient, table: str, **choices: Any) -> tuple[str, list[dict[str, Any]]]:
    """Return the code and the errors of a refusal."""
    answer = client.post("/v1/jobs", json=body(upload(client, table), **choices))
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    return problem["code"], problem["errors"]


def test_the_kind_of_the_model_says_which_body_it_is() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(JobCreate)
    assert isinstance(adapter.validate_python(body("ds")), MixtureEstimationSpec)
    network = adapter.validate_python(body("ds", model={"kind": "gaussian"}))
    assert isinstance(network, EstimationSpec)
    assert isinstance(
        adapter.validate_python({"kind": "estimation", "dataset_id": "ds"}), EstimationSpec
    )


def test_a_stored_spec_of_either_body_is_read_back(client: TestClient) -> None:
    dataset_id = upload(client, ONE_COLUMN)
    spec = client.post("/v1/jobs", json=body(dataset_id)).json()["spec"]
    assert isinstance(spec_of(spec), MixtureEstimationSpec)
    two = upload(client, TWO_COLUMNS)
    model = {"kind": "gaussian"}
    spec = client.post("/v1/jobs", json=body(two, model=model)).json()["spec"]
    assert isinstance(spec_of(spec), EstimationSpec)


def test_a_stored_job_has_every_choice_made(client: TestClient) -> None:
    job = client.post("/v1/jobs", json=body(upload(client, ONE_COLUMN), seed=3)).json()
    assert job["spec"] == {
        "kind": "estimation",
        "dataset_id": job["spec"]["dataset_id"],
        "variables": ["x"],
        "model": {"kind": "mixture", "form": "unnormalised", "sigma_1": 1.0},
        "estimator": {
            "kind": "vnce",
            "climb": "joint",
            "noise_ratio": 10,
            "noise_scale": 1.0,
            "n_starts": 5,
            "max_iter": None,
        },
        "censored": "refuse",
        "seed": 3,
        "tag": None,
    }
    assert job["kind"] == "estimation"


@pytest.mark.parametrize(
    ("model", "estimator", "n_parameters", "n_noise_rows"),
    [
        ({}, {"kind": "vnce", "noise_ratio": 3}, 2, 21),
        ({}, {"kind": "nce"}, 2, 70),
        ({}, {"kind": "mle"}, 1, 0),
        ({"form": "normalised"}, {"kind": "vnce"}, 1, 70),
    ],
)
def test_a_plan_counts_values_parameters_and_noise(
    client: TestClient,
    model: dict[str, Any],
    estimator: dict[str, Any],
    n_parameters: int,
    n_noise_rows: int,
) -> None:
    wanted = body(upload(client, ONE_COLUMN), model={**MIXTURE, **model}, estimator=estimator)
    plan = client.post("/v1/jobs:validate", json=wanted).json()
    size = plan["estimation"]["size"]
    assert (size["n_rows"], size["n_variables"]) == (9, 1)
    assert (size["n_parameters"], size["n_noise_rows"]) == (n_parameters, n_noise_rows)
    assert plan["estimation"]["n_missing"] == 2
    [gaps] = [warning for warning in plan["warnings"] if warning["code"] == "missing-cells"]
    assert "left out" in gaps["message"]
    # That there is one column is meant, and so are values on both sides of zero.
    assert {warning["code"] for warning in plan["warnings"]} == {"missing-cells"}


def test_one_column_of_several_is_chosen_by_name(client: TestClient) -> None:
    dataset_id = upload(client, TWO_COLUMNS)
    job = client.post("/v1/jobs", json=body(dataset_id, variables=["y"])).json()
    assert job["spec"]["variables"] == ["y"]


def test_several_columns_are_refused_with_the_way_to_choose(client: TestClient) -> None:
    code, [error] = reasons(client, TWO_COLUMNS)
    assert code == "incompatible-model"
    assert (error["pointer"], error["count"]) == ("/variables", 2)
    assert "name the one to use in `variables`" in error["message"]
    _, [error] = reasons(client, TWO_COLUMNS, variables=["x", "y"])
    assert error["pointer"] == "/variables"


@pytest.mark.parametrize(
    ("table", "choices", "place", "told"),
    [
        ("x\n1\n2\n3\n-4\n5\nNA\nNA", {}, ("column", "x"), "At least 6 values are needed, got 5"),
        ("x\n" + "2\n" * 9, {}, ("column", "x"), "the same"),
        (ONE_COLUMN, {"variables": ["z"]}, ("pointer", "/variables/0"), "no variable of this name"),
        ("x\n1\n2\n3\n-4\n5\n6\n<0.5", {}, ("column", "x"), "limit"),
    ],
)
def test_a_column_that_says_too_little_is_refused_by_name(
    client: TestClient, table: str, choices: dict[str, Any], place: tuple[str, str], told: str
) -> None:
    code, [error] = reasons(client, table, **choices)
    assert code == "incompatible-model"
    assert error[place[0]] == place[1]
    assert told in error["message"]


def test_exact_zeros_are_refused_only_where_the_likelihood_has_no_bound(
    client: TestClient,
) -> None:
    table = ONE_COLUMN + "\n0\n0"
    normalised = {**MIXTURE, "form": "normalised"}
    _, [error] = reasons(client, table, model=normalised, estimator={"kind": "mle"})
    assert (error["column"], error["count"]) == ("x", 2)
    for model, kind in ((normalised, "nce"), (MIXTURE, "mle")):
        wanted = body(upload(client, table), model=model, estimator={"kind": kind})
        assert client.post("/v1/jobs", json=wanted).status_code == 202


@pytest.mark.parametrize(
    ("choices", "pointer", "told"),
    [
        ({"estimator": {"kind": "score-matching"}}, "/estimator/kind", "'vnce', 'nce', 'mle'"),
        (
            {"estimator": {"kind": "mle", "noise_ratio": 3}},
            "/estimator/noise_ratio",
            "does not apply here",
        ),
        (
            {"estimator": {"kind": "vnce", "penalty": 1.0}},
            "/estimator/penalty",
            "does not apply here",
        ),
        ({"model": {**MIXTURE, "sigma_1": 0}}, "/model/sigma_1", "greater than 0"),
        ({"model": {**MIXTURE, "form": "other"}}, "/model/form", "'normalised' or 'unnormalised'"),
        ({"model": {"kind": "mixtures"}}, "/model/kind", "'mixture'"),
        ({"edge_threshold": 0.2}, "/edge_threshold", "does not apply here"),
        ({"estimator": {"kind": "nce", "n_starts": 0}}, "/estimator/n_starts", "greater than"),
    ],
)
def test_what_does_not_belong_to_the_mixture_is_refused_by_its_place(
    client: TestClient, choices: dict[str, Any], pointer: str, told: str
) -> None:
    code, [error] = reasons(client, ONE_COLUMN, **choices)
    assert code == "validation-failed"
    assert error["pointer"] == pointer
    assert told in error["message"]


def test_estimator_kinds_say_which_models_they_are_for(client: TestClient) -> None:
    models = {item["kind"] for item in client.get("/v1/model-kinds").json()["items"]}
    assert models == {"truncated-gaussian", "gaussian", "mixture"}
    kinds = client.get("/v1/estimator-kinds").json()["items"]
    assert {model for item in kinds for model in item["models"]} == models
    of_mixture = [item["kind"] for item in kinds if "mixture" in item["models"]]
    assert of_mixture == ["vnce", "nce", "mle"]


def test_a_left_out_seed_is_always_the_same_and_one_of_null_is_drawn(client: TestClient) -> None:
    dataset_id = upload(client, ONE_COLUMN)

    def seeds(**choice: None) -> set[int]:
        requests = [body(dataset_id) | choice for _ in range(3)]
        return {client.post("/v1/jobs", json=each).json()["spec"]["seed"] for each in requests}

    assert seeds() == {0}
    # Of 2**31 seeds three are alike with a probability of one in 700 million.
    assert len(seeds(seed=None)) == 3


def test_a_mixture_cannot_be_scored_against_a_graph_that_its_table_has(
    client: TestClient,
) -> None:
    dataset_id = upload(client, TWO_COLUMNS)
    truth = {"kind": "edges", "edges": [{"source": "x", "target": "y"}]}
    client.put(f"/v1/datasets/{dataset_id}/ground-truth", json=truth).raise_for_status()
    plan = client.post("/v1/jobs:validate", json=body(dataset_id, variables=["x"])).json()
    assert plan["estimation"]["has_ground_truth"] is False

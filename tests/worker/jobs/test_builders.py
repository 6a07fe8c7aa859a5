"""Specifications become the engine's estimators, every choice of them."""

from typing import Any, get_args

import numpy as np
import pytest

from service.jobs.specs.base import SpecModel
from service.jobs.specs.estimation import EstimationSpec, EstimatorSpec
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.estimators.truncated_gaussian import TruncatedGaussianEstimator
from worker.jobs.builders import build_estimator

ON_THE_LINE = [
    {"kind": "vnce"},
    {"kind": "nce"},
    {"kind": "gaussian-em"},
    {"kind": "gaussian-score-matching"},
]
# Choices that are no defaults, by the names of the API and of the engine.
CONTRASTIVE = {
    "penalty_kind": "l1",
    "penalties": [2.0, 1.0],
    "ebic_gamma": 0.25,
    "n_subsamples": 50,
    "inclusion_threshold": 0.9,
    "max_false_edges": 1.0,
    "noise_ratio": 7,
    "noise_scale": 1.5,
    "noise_draws": "random",
    "max_iter": 9,
    "tol": 0.01,
}
COMPARATORS = [
    ({"kind": "mle", "method": "stochastic", "step_size": 0.2, "penalty": 0.5}, {}),
    ({"kind": "mle", "tol": 0.1, "max_iter": 7, "penalty_kind": "ridge"}, {}),
    (
        {"kind": "contrastive-divergence", "persistent": False, "n_sweeps": 3, "step_size": 0.3},
        {"num_sweeps": 3},
    ),
    ({"kind": "pseudo-likelihood", "imputation": "mean", "penalty": 1.5, "tol": 0.1}, {}),
    ({"kind": "score-matching", "weight": "square", "penalty_kind": "l1", "max_iter": 4}, {}),
]

# What every estimator has.
COMMON = {"min_observed": 7, "edge_threshold": 0.2, "random_state": 5}


def spec_of(model: dict[str, Any] | None = None, **estimator: Any) -> EstimationSpec:
    """Return the specification that the service would store."""
    return EstimationSpec.model_validate(
        {
            "kind": "estimation",
            "dataset_id": "ds_1",
            "variables": ["a", "b"],
            "model": model or {"kind": "truncated-gaussian", "transform": "cbrt"},
            "estimator": estimator,
            "min_observed": 7,
            "edge_threshold": 0.2,
            "seed": 5,
        }
    )


def chosen(estimator: NetworkEstimator) -> dict[str, Any]:
    parameters: dict[str, Any] = estimator.get_params()
    return parameters


@pytest.mark.parametrize(
    "choices", [{"kind": "vnce"}, {"kind": "nce", "imputation": "zero"}], ids=lambda c: c["kind"]
)
def test_every_choice_of_a_contrastive_spec_reaches_the_estimator(choices: dict[str, Any]) -> None:
    parameters = chosen(build_estimator(spec_of(**choices, **CONTRASTIVE)))
    expected = {**CONTRASTIVE, **COMMON, "column_transform": "cbrt"}
    assert parameters == {**parameters, **expected, "linear": "auto", "penalty": "auto"}
    assert parameters.get("imputation", "zero") == "zero"


@pytest.mark.parametrize("of_kind", get_args(get_args(EstimatorSpec)[0]))
def test_what_a_spec_says_by_default_reaches_its_estimator(of_kind: type[SpecModel]) -> None:
    kind = of_kind.model_fields["kind"].default
    model = "gaussian" if kind.startswith("gaussian") else "truncated-gaussian"
    spec = spec_of({"kind": model}, kind=kind)
    said = spec.estimator.model_dump(mode="json", exclude={"kind", "n_sweeps"})
    parameters = chosen(build_estimator(spec))
    assert said == {name: parameters[name] for name in said}
    # Words are plain strings, as in Python.
    assert all(type(parameters[name]) is type(said[name]) for name in said)


def test_selection_and_preset_reach_the_estimator() -> None:
    choices = {"kind": "vnce", "penalty_kind": "l1", "selection": "stability"}
    assert chosen(build_estimator(spec_of(**choices)))["selection"] == "stability"
    paper = build_estimator(spec_of(kind="vnce", preset="paper"))
    assert chosen(paper)["preset"] == "paper"


@pytest.mark.parametrize(("choices", "renamed"), COMPARATORS, ids=str)
def test_every_choice_of_a_comparator_reaches_it(
    choices: dict[str, Any], renamed: dict[str, Any]
) -> None:
    parameters = chosen(build_estimator(spec_of(**choices)))
    wanted = {key: value for key, value in choices.items() if key not in ("kind", "n_sweeps")}
    assert parameters == {**parameters, **wanted, **renamed, **COMMON, "linear": "auto"}


def test_a_linear_term_that_was_asked_for_reaches_a_comparator() -> None:
    model = {"kind": "truncated-gaussian", "linear": "free"}
    assert chosen(build_estimator(spec_of(model, kind="mle")))["linear"] == "free"


@pytest.mark.parametrize("penalty", [None, 0.1, "ebic", "cv"])
def test_a_lasso_arrives_as_the_engine_takes_it(penalty: Any) -> None:
    spec = spec_of({"kind": "gaussian"}, kind="gaussian-em", penalty=penalty, ebic_gamma=0.0)
    parameters = chosen(build_estimator(spec))
    assert parameters == {**parameters, **COMMON, "penalty": penalty, "ebic_gamma": 0.0}


@pytest.mark.parametrize("model", ["truncated-gaussian", "gaussian"])
@pytest.mark.parametrize("kind", ["vnce", "nce"])
def test_the_kind_of_penalty_is_open_unless_given(kind: str, model: str) -> None:
    for given in ({}, {"penalty_kind": "auto"}, {"penalty_kind": "adaptive"}):
        estimator = build_estimator(spec_of({"kind": model}, kind=kind, **given))
        assert chosen(estimator)["penalty_kind"] == given.get("penalty_kind", "auto")


@pytest.mark.parametrize("penalty", [None, 0.1, "cv"])
def test_a_ridge_of_score_matching_arrives_as_the_engine_takes_it(penalty: Any) -> None:
    choices = {"kind": "gaussian-score-matching", "penalty": penalty, "tol": 1e-4, "max_iter": 7}
    parameters = chosen(build_estimator(spec_of({"kind": "gaussian"}, **choices)))
    assert (parameters["penalty"], parameters["tol"], parameters["max_iter"]) == (penalty, 1e-4, 7)


@pytest.mark.parametrize("penalty", ["auto", None, 2.0])
def test_a_penalty_arrives_as_the_engine_takes_it(penalty: Any) -> None:
    assert chosen(build_estimator(spec_of(kind="vnce", penalty=penalty)))["penalty"] == penalty


@pytest.mark.parametrize(
    "choices", [{"kind": "vnce"}, {"kind": "nce", "imputation": "zero"}], ids=lambda c: c["kind"]
)
def test_every_choice_of_a_contrastive_spec_reaches_the_estimator_of_a_gaussian(
    choices: dict[str, Any],
) -> None:
    parameters = chosen(build_estimator(spec_of({"kind": "gaussian"}, **choices, **CONTRASTIVE)))
    expected = {**CONTRASTIVE, **COMMON, "penalty": "auto"}
    assert parameters == {**parameters, **expected}
    assert parameters.get("imputation", "zero") == "zero"


@pytest.mark.parametrize("choices", ON_THE_LINE, ids=lambda choices: choices["kind"])
def test_a_gaussian_takes_negative_columns_and_has_no_penalty_unless_told(
    choices: dict[str, Any],
) -> None:
    spec = spec_of({"kind": "gaussian"}, **{**choices, "penalty": None})
    estimator = build_estimator(spec)
    assert not isinstance(estimator, TruncatedGaussianEstimator)
    assert estimator.fit(np.random.default_rng(0).normal(size=(50, 2))).converged_

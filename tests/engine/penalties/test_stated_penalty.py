"""What a result says of its penalty is what its K was fitted with."""

from typing import Any

import numpy as np
import pytest

from vnce_engine import (
    TruncatedGaussianCD,
    TruncatedGaussianMLE,
    TruncatedGaussianNCE,
    TruncatedGaussianPseudoLikelihood,
    TruncatedGaussianScoreMatching,
    TruncatedGaussianVNCE,
)
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)


@pytest.fixture(scope="module")
def ring() -> np.ndarray:
    rng = np.random.default_rng(17)
    return sample_truncated_gaussian(ring_precision(6, rng), 300, rng)


def said(model: NetworkEstimator) -> tuple[float | None, str | None, str | None]:
    return model.penalty_, model.penalty_kind_, model.selection_


def distance(one: NetworkEstimator, other: NetworkEstimator) -> float:
    return float(np.abs(one.precision_ - other.precision_).max())


@pytest.mark.slow
def test_a_centred_ridge_that_was_chosen_is_named_with_its_own_strength() -> None:
    K = np.full((5, 5), 0.2) + np.eye(5)
    X = sample_truncated_gaussian(K, 1000, np.random.default_rng(4))
    model = TruncatedGaussianVNCE(linear="zero", random_state=0).fit(X)
    strength, kind, selection = said(model)
    assert (kind, selection) == ("centred-ridge", "held-out")
    (chosen,) = [step for step in model.penalty_path_ if step.chosen]
    assert chosen.kind == kind

    def fitted(kind: Any) -> TruncatedGaussianVNCE:
        return TruncatedGaussianVNCE(
            linear="zero", penalty=strength, penalty_kind=kind, random_state=0
        ).fit(X)

    # New noise moves an estimate too, but far less than another penalty does.
    assert distance(model, fitted(kind)) < 0.2 * distance(model, fitted("adaptive"))


@pytest.mark.slow
def test_a_chosen_graph_of_a_short_table_is_said_to_have_a_weak_ridge() -> None:
    # 8 rows: even a graph without edges has as many parameters.
    X = np.abs(np.random.default_rng(3).normal(size=(8, 4)))
    model = TruncatedGaussianVNCE(
        linear="zero", penalty_kind="l1", selection="stability", n_subsamples=4, random_state=1
    ).fit(X)
    assert said(model)[:2] == (0.03, "ridge")


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        TruncatedGaussianMLE(penalty=2.0, penalty_kind="ridge", max_iter=3),
        TruncatedGaussianCD(penalty=2.0, penalty_kind="ridge", max_iter=1),
        TruncatedGaussianPseudoLikelihood(penalty=2.0, penalty_kind="ridge"),
        TruncatedGaussianScoreMatching(penalty=2.0, penalty_kind="ridge"),
        TruncatedGaussianVNCE(preset="paper", penalty=2.0, penalty_kind="ridge", max_iter=3),
        TruncatedGaussianNCE(penalty=2.0, penalty_kind="ridge", max_iter=1),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_given_penalty_is_named_with_its_shape(
    estimator: NetworkEstimator, ring: np.ndarray
) -> None:
    assert said(estimator.fit(ring)) == (2.0, "ridge", None)


@pytest.mark.parametrize("penalty", [None, 0.0])
def test_no_penalty_is_said_to_be_none(penalty: float | None, ring: np.ndarray) -> None:
    model = TruncatedGaussianScoreMatching(penalty=penalty).fit(ring)
    assert said(model) == (None, None, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        TruncatedGaussianPseudoLikelihood,
        TruncatedGaussianScoreMatching,
        TruncatedGaussianNCE,
    ],
)
def test_a_strength_counts_for_the_rows_that_are_left_where_others_are_dropped(
    estimator: Any, ring: np.ndarray
) -> None:
    X = mask_completely_at_random(ring, 0.1, np.random.default_rng(6))
    complete = X[~np.isnan(X).any(axis=1)]
    assert len(complete) < 0.7 * len(X)
    options = {"penalty": 5.0, "penalty_kind": "ridge", "random_state": 0}
    dropped = estimator(imputation="drop", **options).fit(X)
    assert (
        dropped.precision_ == estimator(imputation="drop", **options).fit(complete).precision_
    ).all()

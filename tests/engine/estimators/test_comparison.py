"""Models of one table side by side: held-out densities, and pairs on which networks differ."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from vnce_engine import (
    GaussianEM,
    GaussianVNCE,
    TruncatedGaussianScoreMatching,
    TruncatedGaussianVNCE,
    compare,
)
from vnce_engine.runtime.progress import FitCancelledError
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)


@pytest.fixture(scope="module", name="X")
def _table() -> np.ndarray:
    rng = np.random.default_rng(6)
    X = sample_truncated_gaussian(ring_precision(5, rng), 500, rng)
    return mask_completely_at_random(X, 0.2, rng)


@pytest.mark.slow
def test_the_model_that_made_the_table_is_the_best(X: np.ndarray) -> None:
    X = np.vstack([X, np.full(5, np.nan)])
    found = compare(
        {
            "Gaussian": GaussianEM(),
            "cubed": GaussianEM(column_transform="cbrt"),
            "truncated": TruncatedGaussianVNCE(linear="zero", penalty=0.3),
        },
        X,
    )
    assert found.models[0].name == "truncated"
    best, *others = found.models
    assert (best.behind, best.behind_error) == (0, 0)
    for model in others:
        assert model.behind == pytest.approx(best.log_density - model.log_density)
        assert model.behind > 3 * model.behind_error > 0


@pytest.mark.slow
def test_normal_columns_are_described_best_by_the_gaussian() -> None:
    # Of both signs; shifted, or the truncated Gaussian would refuse them. With h free it is nearly
    # a Gaussian itself, so far from 0, and without h it is not.
    rng = np.random.default_rng(8)
    X = rng.multivariate_normal(np.zeros(3), np.eye(3) + 0.4, size=400)
    truncated = TruncatedGaussianVNCE(linear="zero", penalty=0.3)
    with pytest.raises(ValueError, match="Negative"):
        compare({"truncated": truncated, "Gaussian": GaussianEM()}, X)
    best, worse = compare({"truncated": truncated, "Gaussian": GaussianEM()}, X - X.min()).models
    assert (best.name, worse.name) == ("Gaussian", "truncated")
    assert worse.behind > 3 * worse.behind_error


def test_a_model_and_itself_differ_by_nothing(X: np.ndarray) -> None:
    found = compare({"one": GaussianEM(), "again": GaussianEM()}, X, n_folds=3)
    assert [(model.behind, model.behind_error) for model in found.models] == [(0, 0), (0, 0)]
    assert not found.disputed


def test_the_density_is_that_of_fits_without_each_fold(X: np.ndarray) -> None:
    table = X[~np.isnan(X).all(axis=1)]
    strong, none = GaussianEM(penalty=0.3), GaussianEM()
    found = compare({"strong": strong, "none": none}, table, n_folds=4, random_state=3)
    density = {model.name: model.log_density for model in found.models}
    # Differences of paired rows have the same errors, whichever folds: a few hundredths of a nat.
    folds = np.array_split(np.random.default_rng(0).permutation(len(table)), 4)
    for name, estimator in (("strong", strong), ("none", none)):
        values = np.concatenate(
            [
                estimator.fit(np.delete(table, fold, axis=0)).score_samples(table[fold])
                for fold in folds
            ]
        )
        assert density[name] == pytest.approx(values.mean(), abs=0.1 * values.std())
    assert density["none"] > density["strong"]


def test_pairs_that_some_models_select_are_agreed_or_disputed(X: np.ndarray) -> None:
    estimators: dict[str, Any] = {
        "sparse": GaussianEM(penalty=0.05, edge_threshold=0.05),
        "dense": GaussianVNCE(penalty=0.3, fdr=0.2),
    }
    found = compare(estimators, X, n_folds=2)
    selected = {
        model.name: {(e.source, e.target) for e in model.estimator.edges_ if e.selected}
        for model in found.models
    }
    both = selected["sparse"] & selected["dense"]
    some = selected["sparse"] | selected["dense"]
    assert {(pair.source, pair.target) for pair in found.agreed} == both
    assert {(pair.source, pair.target) for pair in found.disputed} == some - both
    for pair in found.disputed + found.agreed:
        edge = pair.edges["dense"]
        assert edge.lower is not None
        assert edge.lower < edge.upper
    assert both


def test_a_model_that_some_fold_refuses_has_no_density_and_says_why(X: np.ndarray) -> None:
    X = X.copy()
    X[np.flatnonzero(~np.isnan(X[:, 2]))[9:], 2] = np.nan  # of nine cells every fold has some
    few = GaussianEM(min_observed=1, penalty=0.1, max_iter=30)
    frame = pd.DataFrame(X, columns=list("abcde"))
    found = compare({"all": GaussianEM(min_observed=9), "few": few}, frame, n_folds=2)
    best, refused = found.models
    assert (best.name, best.held_out.reason) == ("few", None)
    assert refused.held_out.reason is not None
    assert refused.held_out.reason.startswith("Without fold 1 of 2 the fit is refused: Fewer than")
    assert " c (" in refused.held_out.reason
    assert np.isnan([refused.log_density, refused.behind, refused.behind_error]).all()
    assert found.agreed or found.disputed


def test_more_folds_than_rows_are_no_ground_for_a_density(X: np.ndarray) -> None:
    found = compare({"a": GaussianEM(), "b": GaussianEM()}, X[:30], n_folds=40)
    assert found.models[0].held_out.reason == (
        "30 rows with something observed are too few for 40 folds"
    )


def test_without_a_positive_definite_k_there_is_no_density_but_edges(X: np.ndarray) -> None:
    matched = TruncatedGaussianScoreMatching(linear="zero")
    table = np.nan_to_num(X, nan=0.3)[:60]
    found = compare({"matched": matched, "Gaussian": GaussianEM()}, table)
    reason = found.models[-1].held_out.reason
    assert reason is not None
    assert "K is not positive definite" in reason
    [indefinite] = [one for one in found.models if one.name == "matched"]
    assert np.isnan(indefinite.estimator.partial_correlation_).any()
    assert not found.disputed
    assert set(found.agreed[0].edges) == {"matched", "Gaussian"}


@pytest.mark.slow
def test_the_share_of_draws_in_an_error_is_told_and_small(X: np.ndarray) -> None:
    truncated = TruncatedGaussianVNCE(linear="zero", penalty=0.3)
    found = compare({"truncated": truncated, "Gaussian": GaussianEM()}, X, n_folds=2)
    error = {model.name: model.held_out.monte_carlo_error for model in found.models}
    assert error["Gaussian"] == 0  # whose integrals are exact
    assert 0 < error["truncated"] < 0.1 * found.models[0].standard_error


def test_models_with_zeros_under_a_steep_transform_are_compared(X: np.ndarray) -> None:
    X = np.where(X < 0.1, 0, X)
    found = compare({"plain": GaussianEM(), "root": GaussianEM(column_transform="sqrt")}, X)
    assert all(np.isfinite(model.log_density) for model in found.models)


def test_it_tells_of_progress_and_can_be_cancelled(X: np.ndarray) -> None:
    estimators = {"a": GaussianEM(), "b": GaussianEM(penalty=0.1)}
    steps: list[Any] = []
    compare(estimators, X, n_folds=2, on_step=steps.append)
    assert {step.stage for step in steps} == {"a", "b"}
    fractions = [step.fraction for step in steps]
    assert fractions == sorted(fractions)
    assert fractions[-1] > 5 / 6
    with pytest.raises(FitCancelledError):
        compare(estimators, X, on_step=lambda step: step.fraction > 0.5)


def test_one_model_or_one_fold_compares_nothing(X: np.ndarray) -> None:
    with pytest.raises(ValueError, match="`estimators` must be two or more, got 1"):
        compare({"a": GaussianEM()}, X)
    with pytest.raises(ValueError, match="`n_folds`"):
        compare({"a": GaussianEM(), "b": GaussianEM()}, X, n_folds=1)

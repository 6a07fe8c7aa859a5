"""Models of one table side by side: held-out densities, and pairs on which networks differ."""

from typing import Any

import numpy as np
import pytest

from vnce_engine import GaussianEM, GaussianVNCE, TruncatedGaussianVNCE, compare
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
    assert found.models[0].standard_error == 0
    for model in found.models[1:]:
        assert found.models[0].log_density - model.log_density > 3 * model.standard_error > 0


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

"""Tables are fitted in an order of their contents, whatever order they come in."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata

from vnce_engine import GaussianVNCE, TruncatedGaussianNCE, TruncatedGaussianVNCE
from vnce_engine.data.canonical import canonical_order
from vnce_engine.data.observations import MIN_ROWS, Observations

FloatArray = NDArray[np.float64]


def ordinal(rng: np.random.Generator) -> FloatArray:
    """Return a questionnaire of four levels: many rows, and sums of rows, are alike."""
    X = rng.integers(4, size=(300, 8)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def ranks(rng: np.random.Generator) -> FloatArray:
    """Return columns that all hold the same numbers."""
    X: FloatArray = rankdata(rng.normal(size=(80, 5)), axis=0)
    return X


def skewed(rng: np.random.Generator) -> FloatArray:
    X = rng.gamma(1.5, size=(200, 6)) * [1, 1e-6, 1e6, 3, 0.1, 7]
    X[rng.random(X.shape) < 0.3] = np.nan
    return X


def ordered(X: FloatArray) -> FloatArray:
    observations = Observations.from_array(X)
    return observations.reordered(*canonical_order(observations)).to_array()


@pytest.mark.parametrize("make", [ordinal, ranks, skewed])
def test_rows_and_columns_in_any_order_become_the_same_table(make) -> None:
    rng = np.random.default_rng(0)
    X = make(rng)
    expected = ordered(X)
    for _ in range(20):
        shuffled = X[rng.permutation(len(X))][:, rng.permutation(X.shape[1])]
        np.testing.assert_array_equal(ordered(shuffled), expected)


def test_units_and_origins_do_not_change_the_order() -> None:
    rng = np.random.default_rng(1)
    X = skewed(rng)
    rows, columns = canonical_order(Observations.from_array(X))
    other = X * rng.uniform(0.1, 10, size=6) + rng.uniform(0, 3, size=6)
    again = canonical_order(Observations.from_array(other))
    assert torch.equal(again[0], rows)
    assert torch.equal(again[1], columns)


def test_every_row_and_column_is_there_once() -> None:
    X = skewed(np.random.default_rng(2))
    rows, columns = canonical_order(Observations.from_array(X))
    assert sorted(rows.tolist()) == list(range(200))
    assert sorted(columns.tolist()) == list(range(6))


@pytest.mark.slow
@pytest.mark.parametrize("make", [ordinal, ranks])
def test_an_estimate_is_the_same_to_the_bit_however_the_table_is_shuffled(make) -> None:
    rng = np.random.default_rng(3)
    X = make(rng) + 1.0
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    first = TruncatedGaussianVNCE().fit(X)
    second = TruncatedGaussianVNCE().fit(X[rows][:, columns])
    assert second.penalty_ == first.penalty_
    np.testing.assert_array_equal(second.precision_, first.precision_[np.ix_(columns, columns)])


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [TruncatedGaussianVNCE, GaussianVNCE, TruncatedGaussianNCE])
@pytest.mark.parametrize("num_rows", [MIN_ROWS, 9])
def test_fewer_rows_than_folds_are_held_out_one_by_one(estimator, num_rows: int) -> None:
    X = np.random.default_rng(4).gamma(3.0, size=(num_rows, 3))
    fitted = estimator().fit(X)
    assert np.isfinite(fitted.precision_).all()
    assert all(np.isfinite(step.criterion) for step in fitted.penalty_path_)

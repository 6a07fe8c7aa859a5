"""Stochastic gradient ascent: steps in the units of the columns."""

import numpy as np
import pytest

from vnce_engine import TruncatedGaussianCD

NUM_ROWS, NUM_COLUMNS, CORRELATION = 1000, 5, 0.8


@pytest.mark.slow
@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("distance", [3.0, 10.0])
def test_columns_far_from_zero_depend_on_each_other_as_much_as_they_do(
    distance: float, persistent: bool
) -> None:
    """One pair does; steps in the table's own units left .15 for every pair, whatever the data.

    Correlations have standard errors of .03, and steps are stochastic.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((NUM_ROWS, NUM_COLUMNS))
    X[:, 1] = CORRELATION * X[:, 0] + np.sqrt(1 - CORRELATION**2) * X[:, 1]
    model = TruncatedGaussianCD(linear="free", persistent=persistent).fit(np.abs(X + distance))
    pair, *others = model.scaled_interaction_[np.triu_indices(NUM_COLUMNS, k=1)]
    assert pair == pytest.approx(CORRELATION, abs=0.15)
    assert np.abs(others).max() < 4 / np.sqrt(NUM_ROWS)

"""What is asked of columns: enough observed cells."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import vnce_engine
from vnce_engine import GaussianEM, TruncatedGaussianScoreMatching
from vnce_engine.data.columns import least_observed
from vnce_engine.data.observations import MIN_ROWS

ESTIMATORS = [
    getattr(vnce_engine, name)
    for name in vnce_engine.__all__
    if hasattr(getattr(vnce_engine, name), "fit")
]


def table(num_rows: int, rare: int) -> pd.DataFrame:
    """Return a table whose column c has so many observed cells."""
    X = np.random.default_rng(0).uniform(0.5, 2.0, size=(num_rows, 4))
    X[rare:, 2] = np.nan
    return pd.DataFrame(X, columns=list("abcd"))


@pytest.mark.parametrize(
    ("num_rows", "least"),
    [(6, 3), (7, 4), (12, 6), (20, 10), (500, 10), (501, 11), (350, 10), (100_000, 2000)],
)
def test_the_default_is_ten_or_two_percent_but_no_more_than_half(num_rows: int, least: int) -> None:
    assert least_observed(num_rows) == least


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_names_columns_with_too_few_cells_their_counts_and_the_option(
    estimator: Any,
) -> None:
    said = r"Fewer than 10 of 40 cells .* in .*: c \(2\)\. .* `min_observed`"
    with pytest.raises(ValueError, match=said):
        estimator(random_state=0).fit(table(40, rare=2))
    with pytest.raises(ValueError, match=r"Fewer than 41 of 40 cells .*: a \(40\), b"):
        estimator(random_state=0, min_observed=41).fit(table(40, rare=40))
    with pytest.raises(ValueError, match="`min_observed` must be a whole number"):
        estimator(min_observed=0).fit(table(40, rare=40))


@pytest.mark.slow
def test_a_column_that_was_asked_for_is_fitted() -> None:
    model = TruncatedGaussianScoreMatching(random_state=0, penalty=1.0, max_iter=5, min_observed=4)
    assert np.isfinite(model.fit(table(40, rare=4)).precision_).all()


def test_rows_with_nothing_observed_do_not_count() -> None:
    frame = table(12, rare=6)
    empty = pd.DataFrame(np.nan, index=range(500), columns=frame.columns)
    GaussianEM(max_iter=3).fit(pd.concat([frame, empty]))


def test_the_smallest_complete_table_passes() -> None:
    GaussianEM(max_iter=3).fit(table(MIN_ROWS, rare=MIN_ROWS))

"""Tables completed by draws: their laws, what they keep, and how often intervals hold the truth."""

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from vnce_engine import (
    GaussianEM,
    TruncatedGaussianScoreMatching,
    TruncatedGaussianVNCE,
)
from vnce_engine.data.table_transform import TableTransform
from vnce_engine.data.transforms import Transform
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.inference.multiple_imputation import (
    Draw,
    completed_tables,
    draw_normal,
    draw_truncated,
)
from vnce_engine.simulate import (
    hub_precision,
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)

FloatArray = NDArray[np.float64]

PRECISION = np.array([[2.0, -0.9, 0.3], [-0.9, 1.5, 0.2], [0.3, 0.2, 1.0]])
LINEAR = np.array([0.5, -1.0, 0.8])
NUM_ROWS = 4000
# What a Kolmogorov-Smirnov distance of two samples, or of one and a law, exceeds once in 10,000.
RARE = 1e-4


def model(precision: FloatArray = PRECISION, linear: FloatArray = LINEAR) -> QuadraticModel:
    return QuadraticModel(
        torch.from_numpy(precision), torch.from_numpy(linear), torch.tensor(0.0).double()
    )


def of_all(transform: Transform, num_columns: int = 3) -> TableTransform:
    return TableTransform((transform,) * num_columns)


def complete(draw: Draw, X: FloatArray, transform: Transform = Transform.NONE) -> FloatArray:
    generator = torch.Generator().manual_seed(1)
    (table,) = completed_tables([model()], X, of_all(transform), draw, generator)
    return table


@pytest.mark.parametrize("transform", list(Transform))
@pytest.mark.parametrize("missing", [0, 1, 2])
def test_the_only_missing_cell_of_a_row_has_its_exact_conditional_law(
    missing: int, transform: Transform
) -> None:
    on_scale = np.array([0.4, 1.7, 3.0])
    rows = np.tile(transform.inverse(on_scale), (NUM_ROWS, 1))
    rows[:, missing] = np.nan
    others = np.delete(on_scale, missing)
    sigma = PRECISION[missing, missing] ** -0.5
    pull = LINEAR[missing] - np.delete(PRECISION[missing], missing) @ others
    law = stats.truncnorm(-pull * sigma, np.inf, loc=pull * sigma**2, scale=sigma)
    drawn = transform.forward(complete(draw_truncated, rows, transform)[:, missing])
    assert stats.kstest(drawn, law.cdf).pvalue > RARE


@pytest.mark.parametrize("missing", [[0], [0, 2], [0, 1, 2]])
def test_a_gaussian_s_missing_cells_have_their_exact_conditional_law(missing: list[int]) -> None:
    rows = np.tile([0.4, -1.7, 3.0], (NUM_ROWS, 1))
    rows[:, missing] = np.nan
    among = PRECISION[missing][:, missing]
    kept = np.setdiff1d(range(3), missing)
    pull = LINEAR[missing] - PRECISION[missing][:, kept] @ rows[0, kept]
    deviations = complete(draw_normal, rows)[:, missing] - np.linalg.solve(among, pull)
    # Independent standard normals, and the sum of their squares.
    standard = deviations @ np.linalg.cholesky(among)
    for column in standard.T:
        assert stats.kstest(column, stats.norm.cdf).pvalue > RARE
    squares = np.square(standard).sum(axis=1)
    assert stats.kstest(squares, stats.chi2(len(missing)).cdf).pvalue > RARE


@pytest.mark.parametrize("correlation", [-0.5, 0.95])
def test_cells_that_are_missing_together_depend_on_each_other_as_they_should(
    correlation: float,
) -> None:
    """Against rejection: draws of the parent normal that happen to be in the orthant."""
    covariance = np.array([[1.0, correlation], [correlation, 1.0]])
    mean = np.array([0.3, -0.2])
    precision = np.linalg.inv(covariance)
    rng = np.random.default_rng(2)
    parents = rng.multivariate_normal(mean, covariance, 30 * NUM_ROWS)
    expected = parents[(parents > 0).all(axis=1)][:NUM_ROWS]
    rows = np.full((NUM_ROWS, 2), np.nan)
    generator = torch.Generator().manual_seed(3)
    (drawn,) = completed_tables(
        [model(precision, precision @ mean)],
        rows,
        of_all(Transform.NONE, 2),
        draw_truncated,
        generator,
    )
    for direction in ([1.0, 0.0], [1.0, 1.0], [1.0, -1.0]):
        along = [cells @ np.array(direction) for cells in (drawn, expected)]
        assert stats.ks_2samp(*along).pvalue > RARE


@pytest.mark.parametrize("draw", [draw_truncated, draw_normal])
@pytest.mark.parametrize("transform", list(Transform))
def test_observed_cells_stay_the_same_to_the_last_bit_and_others_are_in_range(
    draw: Draw, transform: Transform
) -> None:
    rng = np.random.default_rng(4)
    X = rng.gamma(0.5, 2.0, size=(50, 3))
    X[0, 0], X[1] = 2.0**53 - 1, np.nan
    X[2:, :][rng.random((48, 3)) < 0.4] = np.nan
    observed = ~np.isnan(X)
    filled = complete(draw, X, transform)
    assert filled[observed].tobytes() == X[observed].tobytes()
    assert np.isfinite(filled).all()
    if draw is draw_truncated or transform is not Transform.NONE:
        assert (filled >= 0).all()


def fitted_table() -> tuple[TruncatedGaussianVNCE, FloatArray]:
    rng = np.random.default_rng(5)
    X = sample_truncated_gaussian(ring_precision(4, rng), 150, rng)
    X = mask_completely_at_random(X, 0.3, rng)
    return TruncatedGaussianVNCE(penalty=1.0, linear="zero").fit(X), X


def test_tables_are_those_of_their_seed_whatever_the_order_of_rows() -> None:
    fitted, X = fitted_table()
    tables = fitted.impute_multiple(X, 3, random_state=7)
    assert tables.shape == (3, *X.shape)
    np.testing.assert_array_equal(fitted.impute_multiple(X, 3, random_state=7), tables)
    order = np.random.default_rng(6).permutation(len(X))
    shuffled = fitted.impute_multiple(X[order], 3, random_state=7)
    np.testing.assert_array_equal(shuffled, tables[:, order])
    missing = np.isnan(X)
    others = fitted.impute_multiple(X, 3, random_state=8)
    for table in (others[0], tables[1], tables[2]):
        assert (table[missing] != tables[0][missing]).all()


def test_equal_rows_have_draws_of_their_own() -> None:
    fitted, _ = fitted_table()
    rows = np.tile([0.5, np.nan, 1.0, np.nan], (5, 1))
    (table,) = fitted.impute_multiple(rows, 1)
    assert len(np.unique(table[:, 1])) == len(rows)


def spread_of_means(fitted: NetworkEstimator) -> float:
    """Return how far the mean of a cell of 4,000 equal rows varies between 20 tables.

    In units of the standard error that it has by draws of the cells alone.
    """
    cells = fitted.impute_multiple(np.tile([0.5, np.nan, 1.0, 0.7], (4_000, 1)), 20)[:, :, 1]
    return float(cells.mean(axis=1).std(ddof=1) / cells.std()) * math.sqrt(4_000)


@pytest.mark.slow
def test_tables_have_parameters_of_their_own_where_it_is_known_how_these_vary() -> None:
    """Else means vary by one such error, from 20 of them known to a half of it.

    150 rows leave a mean an error of its spread over their root, five times as much, and less by
    what a penalty knows beforehand.
    """
    fitted, X = fitted_table()
    assert fitted.has_model_draws_
    assert spread_of_means(fitted) > 2.5
    one_model = GaussianEM().fit(X)
    assert not one_model.has_model_draws_
    assert 0.5 < spread_of_means(one_model) < 1.5


@pytest.mark.slow
@pytest.mark.parametrize("m", [0, 101, 2.5])
def test_a_number_of_tables_that_cannot_be_is_named(m: Any) -> None:
    fitted, X = fitted_table()
    with pytest.raises(ValueError, match="`m` must be"):
        fitted.impute_multiple(X, m)


def test_an_indefinite_k_is_refused() -> None:
    X = np.random.default_rng(0).exponential(size=(40, 3))
    fitted = TruncatedGaussianScoreMatching(linear="zero").fit(X)
    assert not fitted.diagnostics_.is_positive_definite
    with pytest.raises(ValueError, match="positive definite"):
        fitted.impute_multiple(X)


def shares_covered(tables: FloatArray, truth: FloatArray) -> FloatArray:
    """Return how often 50 and 95 % intervals of 39 draws (39, p) hold the truth (p,).

    A truth that is one draw more is as likely to be the lowest of 40 as to have any other rank.
    """
    below = (tables < truth).sum(axis=0)
    return np.array([((below >= r) & (below <= 39 - r)).mean() for r in (10, 1)])


@pytest.mark.slow
@pytest.mark.parametrize("linear", [0.0, 2.0])
@pytest.mark.parametrize("missing", [0.1, 0.5])
@pytest.mark.parametrize("graph", [ring_precision, hub_precision])
def test_intervals_of_cells_hold_the_truth_as_often_as_they_say(
    graph: Callable[[int, np.random.Generator], FloatArray], missing: float, linear: float
) -> None:
    """Under the parameters that the rows were drawn by, independent of one another: 4 SE."""
    rng = np.random.default_rng(9)
    K, h = graph(5, rng), np.full(5, linear)
    complete_rows = sample_truncated_gaussian(K, 1_500, rng, linear=h)
    X = mask_completely_at_random(complete_rows, missing, rng)
    generator = torch.Generator().manual_seed(10)
    none = of_all(Transform.NONE, X.shape[1])
    tables = completed_tables([model(K, h)] * 39, X, none, draw_truncated, generator)
    cells = np.isnan(X)
    found = shares_covered(np.stack(list(tables))[:, cells], complete_rows[cells])
    # Cells of a row depend on each other: as if there were half as many.
    errors = np.sqrt(np.array([0.5 * 0.5, 0.95 * 0.05]) / (0.5 * cells.sum()))
    assert (np.abs(found - [0.5, 0.95]) < 4 * errors).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("graph", "missing", "linear"),
    [(ring_precision, 0.1, "free"), (hub_precision, 0.5, "free"), (ring_precision, 0.5, "zero")],
)
def test_so_they_do_under_estimated_parameters(
    graph: Callable[[int, np.random.Generator], FloatArray],
    missing: float,
    linear: Literal["free", "zero"],
) -> None:
    """Of five tables of 300 rows; that the rows share estimates makes it vary twice as much."""
    found, num_cells = [], 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        h = np.full(5, 2.0) if linear == "free" else np.zeros(5)
        complete_rows = sample_truncated_gaussian(graph(5, rng), 300, rng, linear=h)
        X = mask_completely_at_random(complete_rows, missing, rng)
        fitted = TruncatedGaussianVNCE(penalty=0.3, linear=linear).fit(X)
        cells = np.isnan(X)
        found.append(shares_covered(fitted.impute_multiple(X, 39)[:, cells], complete_rows[cells]))
        num_cells += int(cells.sum())
    errors = np.sqrt(np.array([0.5 * 0.5, 0.95 * 0.05]) / num_cells)
    assert (np.abs(np.mean(found, axis=0) - [0.5, 0.95]) < 2 * 2 * errors).all()

"""Rubin's rules."""

import math

import numpy as np
import pytest
from scipy import stats

from vnce_engine.inference.pooling import pool


def test_estimates_that_agree_have_the_standard_error_of_one_table() -> None:
    pooled = pool(np.full((5, 2), 3.0), np.full((5, 2), 4.0), 20)
    np.testing.assert_array_equal(pooled.estimate, [3.0, 3.0])
    np.testing.assert_array_equal(pooled.standard_error, [2.0, 2.0])
    np.testing.assert_array_equal(pooled.missing_share, [0.0, 0.0])
    np.testing.assert_allclose(pooled.degrees_of_freedom, 21 / 23 * 20)
    lower, upper = pooled.interval(0.9)
    distance = 2 * stats.t(21 / 23 * 20).ppf(0.95)
    np.testing.assert_allclose([lower[0], upper[0]], [3 - distance, 3 + distance])


def test_variance_between_tables_is_added_and_counted() -> None:
    """By hand: W = 2, B = 1 of 1, 2, 3, so that T = 2 + 4/3 and the share is 4/10."""
    pooled = pool([[1.0], [2.0], [3.0]], [[1.0], [2.0], [3.0]])
    assert pooled.estimate[0] == 2.0
    assert pooled.standard_error[0] == pytest.approx(math.sqrt(10 / 3))
    assert pooled.missing_share[0] == pytest.approx(0.4)
    assert pooled.degrees_of_freedom[0] == pytest.approx(2 / 0.4**2)


def test_intervals_hold_a_mean_as_often_as_they_say() -> None:
    """Of 20 normal numbers 12 are known, the others drawn under draws of mean and variance.

    Those are known in closed form (van Buuren, 2018, section 3.2): 95 % of 4,000 tables, 5 SE.
    """
    rng = np.random.default_rng(1)
    num_tables, m, known, n = 4_000, 10, 12, 20
    numbers = rng.normal(size=(num_tables, 1, known))
    mean, variance = numbers.mean(axis=2), numbers.var(axis=2, ddof=1)
    drawn_variance = variance * (known - 1) / rng.chisquare(known - 1, size=(num_tables, m))
    drawn_mean = mean + np.sqrt(drawn_variance / known) * rng.normal(size=(num_tables, m))
    spread = np.sqrt(drawn_variance)[..., None]
    others = drawn_mean[..., None] + spread * rng.normal(size=(num_tables, m, n - known))
    tables = np.concatenate([numbers.repeat(m, axis=1), others], axis=2)
    pooled = pool(tables.mean(axis=2).T, tables.var(axis=2, ddof=1).T / n, n - 1)
    lower, upper = pooled.interval()
    covered = ((lower < 0) & (upper > 0)).mean()
    assert abs(covered - 0.95) < 5 * math.sqrt(0.95 * 0.05 / num_tables)


@pytest.mark.parametrize("shapes", [((1, 2), (1, 2)), ((3, 2), (3, 1)), ((3,), (3,))])
def test_arrays_that_do_not_fit_are_refused(
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    with pytest.raises(ValueError, match=r"must both be \(m, q\)"):
        pool(np.ones(shapes[0]), np.ones(shapes[1]))

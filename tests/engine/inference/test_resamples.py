"""What is summed up over resamples, against sums by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vnce_engine.inference.resamples import Bootstrap, Failure, Network, Spread, summarise

# Three columns: pairs (0, 1), (0, 2), (1, 2).
WHOLE = Network(np.array([0.5, -0.3, 0.1]), np.full(3, np.nan), np.array([1.0, 1.0, 0.0]))


def resample(values: Any, selected: Any = (1, 0, 0), debiased: Any = (np.nan,) * 3) -> Network:
    return Network(*(np.array(part, dtype=float) for part in (values, debiased, selected)))


def of(*outcomes: Network | Failure) -> Bootstrap:
    return summarise(outcomes, WHOLE, 3, len(outcomes))


def test_a_spread_is_that_of_the_numbers_there_are() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 2))
    values[::4, 1] = np.nan
    spread = Spread.of(values, fewest=20)
    for j in range(2):
        known = values[~np.isnan(values[:, j]), j]
        assert spread.count[j] == len(known)
        assert spread.mean[j] == pytest.approx(known.mean())
        assert spread.standard_deviation[j] == pytest.approx(known.std(ddof=1))
        ends = spread.lower[j], spread.upper[j]
        assert ends == pytest.approx(np.quantile(known, (0.025, 0.975)))
    few = Spread.of(values, fewest=31)
    assert np.isnan([few.mean[1], few.standard_deviation[1], few.lower[1], few.upper[1]]).all()
    assert (few.count[1], few.mean[0]) == (30, spread.mean[0])


def test_inclusion_is_a_share_of_the_resamples_that_have_partial_correlations() -> None:
    nothing = resample((np.nan,) * 3, (0, 0, 0))  # of an indefinite K
    found = of(
        resample((0.5, 0.2, 0.0), (1, 1, 0)),
        resample((0.4, 0.1, 0.0), (1, 0, 0)),
        resample((0.4, 0.1, 0.0), (0, 0, 0)),
        nothing,
    )
    np.testing.assert_allclose(found.inclusion, [2 / 3, 1 / 3, 0.0])
    np.testing.assert_array_equal(found.partial_correlation.count, [3, 3, 3])
    assert found.n_ok == 4
    assert np.isnan(found.debiased.mean).all()
    assert (found.debiased.count == 0).all()


def test_rankings_are_compared_with_that_of_the_whole_table() -> None:
    same, reversed_ = resample((0.6, -0.4, 0.2)), resample((0.1, 0.2, -0.3))
    assert of(same, same).rank_correlation == pytest.approx(1.0)
    assert of(reversed_, reversed_).rank_correlation == pytest.approx(-1.0)
    assert of(same, reversed_).rank_correlation == pytest.approx(0.0)
    # Two pairs are selected of the whole table, (0, 1) and (0, 2): one of them is kept.
    assert of(same, reversed_).top_kept == pytest.approx((1.0 + 0.5) / 2)


def test_a_columns_strength_is_the_sum_of_the_sizes_of_its_selected_pairs() -> None:
    found = of(
        resample((0.6, -0.4, 0.2), (1, 1, 0)),
        resample((0.4, 0.2, 0.3), (1, 0, 1)),
    )
    np.testing.assert_allclose(found.strength.mean, [(1.0 + 0.4) / 2, (0.6 + 0.7) / 2, 0.35])
    # The whole table's are .8, .5, .3: of the first the order, of the second 2, 3, 1 for 3, 2, 1.
    assert found.strength_rank_correlation == pytest.approx((1.0 + 0.5) / 2)


def test_sizes_are_without_the_penaltys_bias_where_that_is_known() -> None:
    one = resample((0.2, -0.1, 0.0), (1, 1, 0), debiased=(0.3, -0.5, 0.1))
    found = of(one, one)
    np.testing.assert_allclose(found.strength.mean, [0.8, 0.3, 0.5])
    # Of the whole table the first pair comes before the second, and here after it.
    assert found.rank_correlation == pytest.approx(0.5)
    np.testing.assert_allclose(found.partial_correlation.mean, [0.2, -0.1, 0.0])
    np.testing.assert_allclose(found.debiased.mean, [0.3, -0.5, 0.1])


def test_failures_are_counted_by_cause_and_too_many_leave_no_figures() -> None:
    ok = resample((0.5, 0.2, 0.0))
    failed = Failure("max_iterations"), Failure("max_iterations"), Failure("non_finite")
    found = of(ok, ok, ok, *failed)
    assert found.failures == {"max_iterations": 2, "non_finite": 1}
    assert (found.n_ok, found.reason) == (3, None)
    assert np.isfinite(found.inclusion).all()
    left = of(ok, ok, *failed)
    assert left.n_ok == 2
    assert left.reason == (
        "2 of 5 resamples have a network, fewer than 50%: no shares and intervals are given"
    )
    for values in (left.inclusion, left.partial_correlation.mean, left.strength.lower):
        assert np.isnan(values).all()
    assert (left.rank_correlation, left.top_kept, left.strength_rank_correlation) == (None,) * 3


def test_where_nothing_is_selected_or_all_is_equal_there_is_no_ranking() -> None:
    none = summarise([resample((0.1, 0.2, 0.3))] * 2, replace(WHOLE, selected=np.zeros(3)), 3, 2)
    assert none.top_kept is None
    assert of(resample((0.0,) * 3), resample((0.0,) * 3)).rank_correlation is None

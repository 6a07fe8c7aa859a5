"""Differences of two networks, and what permutations say of them, against sums by hand."""

import numpy as np
import pytest
from scipy.stats import t as student

from vnce_engine.inference.differences import LACKS_ERRORS, NetworkPair, compare_pairs, of_pairs
from vnce_engine.inference.resamples import Failure

# Three columns: pairs (0, 1), (0, 2), (1, 2).
OBSERVED = NetworkPair(
    np.array([[0.5, -0.3, 0.1], [0.1, -0.3, np.nan]]),
    np.array([[0.3, 0.1, 0.1], [0.4, 0.1, 0.1]]),
    np.array([[10.0, 20.0, 20.0], [17.0, 20.0, 20.0]]),
)
# Of the first pair: .25² / (.09² / 9 + .16² / 16).
FREEDOM = 0.0625 / (0.0009 + 0.0016)


def of_z(*z: float) -> NetworkPair:
    shape = 2, len(z)
    estimates = np.array([z, np.zeros(len(z))])
    return NetworkPair(estimates, np.full(shape, np.sqrt(0.5)), np.full(shape, 30.0))


def test_a_difference_is_judged_by_both_standard_errors() -> None:
    found = compare_pairs(OBSERVED, [], 3, 0)
    np.testing.assert_allclose(found.difference, [0.4, 0.0, np.nan])
    np.testing.assert_allclose(found.standard_error, [0.5, np.sqrt(0.02), np.sqrt(0.02)])
    np.testing.assert_allclose(found.z, [0.8, 0.0, np.nan])
    width = student.isf(0.025, FREEDOM) * 0.5
    assert (found.lower[0], found.upper[0]) == pytest.approx((0.4 - width, 0.4 + width))
    p = 2 * student.sf(0.8, FREEDOM)
    np.testing.assert_allclose(found.p_value, [p, 1.0, np.nan])
    # Of the two tests there are, the smaller p-value counts twice.
    np.testing.assert_allclose(found.q_value, [2 * p, 1.0, np.nan])
    assert found.largest.statistic == pytest.approx(0.8)
    assert found.sum_of_squares.statistic == pytest.approx(0.64)
    assert found.pairs.tolist() == [[0, 1], [0, 2], [1, 2]]


def test_intervals_end_where_differences_of_correlations_do() -> None:
    """A difference of 2, the largest there is, with standard errors of .5 and of 3."""
    for error, lower in ((0.5, 2 - student.isf(0.025, 18) * 0.5**0.5), (3.0, -2.0)):
        estimates, num_pairwise = np.array([[1.0], [-1.0]]), np.full((2, 1), 10.0)
        pair = NetworkPair(estimates, np.full((2, 1), error), num_pairwise)
        found = compare_pairs(pair, [], 2, 0)
        assert (found.lower[0], found.upper[0]) == (pytest.approx(lower), 2.0)


def test_p_values_count_the_permutations_that_differ_as_much_and_the_table_itself() -> None:
    observed = of_z(1.0, -2.0, 0.5)  # largest 2, squares 5.25
    permuted = [of_z(2.0, 0.0, 0.0), of_z(0.1, 0.2, -2.5), of_z(1.9, 1.9, 1.9), of_z(0, 0, 0)]
    found = compare_pairs(observed, permuted, 3, 4)
    assert found.largest.p_value == (1 + 2) / 5
    assert found.sum_of_squares.p_value == (1 + 2) / 5
    assert (found.n_requested, found.n_ok, found.failures, found.reason) == (4, 4, {}, None)


def test_pairs_that_are_not_known_are_left_out_and_then_of_permutations_too() -> None:
    permuted = [of_z(0.5, 0.1, np.nan), of_z(0.9, 0.0, 7.0), of_z(np.nan, 0.0, 0.0), Failure("no")]
    found = compare_pairs(OBSERVED, permuted, 3, 4)
    assert found.failures == {LACKS_ERRORS: 1, "no": 1}
    assert (found.n_ok, found.largest.p_value) == (2, (1 + 1) / 3)


def test_without_enough_permutations_there_is_no_p_value_but_a_reason() -> None:
    observed = of_z(1.0, -2.0, 0.5)
    none = compare_pairs(observed, [], 3, 0)
    assert (none.largest.statistic, none.largest.p_value) == (pytest.approx(2.0), None)
    assert none.reason == "no permutations were asked for"
    few = compare_pairs(observed, [observed, Failure("a"), Failure("a")], 3, 3)
    assert few.sum_of_squares.p_value is None
    assert (few.n_ok, few.failures) == (1, {"a": 2})
    assert str(few.reason).startswith("1 of 3 permutations")


def test_where_nothing_is_known_there_is_no_statistic() -> None:
    found = compare_pairs(of_z(np.nan, np.nan, np.nan), [of_z(1, 1, 1)], 3, 1)
    assert found.largest.statistic is found.largest.p_value is None
    assert np.isnan(found.q_value).all()
    assert "no pair" in str(found.reason)


def test_edges_in_any_order_and_direction_are_brought_to_pairs() -> None:
    edges = [(2, 0, 0.3, 0.1, 9), (0, 1, -0.2, 0.2, 8), (1, 2, None, None, 7)]
    np.testing.assert_array_equal(
        of_pairs(edges, 3), [[-0.2, 0.3, np.nan], [0.2, 0.1, np.nan], [8, 9, np.nan]]
    )


def test_degrees_of_freedom_are_those_of_both_tables_or_of_the_one_with_the_larger_error() -> None:
    errors = np.array([[0.1, 0.1, 1e-6, 1e90], [0.1, 1e-6, 0.1, 1e90]])
    counts = np.array([[11.0, 11.0, 11.0, 1.0], [11.0, 21.0, 21.0, 1.0]])
    pair = NetworkPair(np.zeros((2, 4)), errors, counts)
    np.testing.assert_allclose(pair.freedom, [20.0, 10.0, 20.0, 2.0], rtol=1e-6)

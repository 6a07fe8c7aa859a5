"""Intervals, q-values and verdicts of edges."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import t

from vnce_engine.inference.result import Edge, Uncertainty, Verdict
from vnce_engine.inference.significance import DiscoveryRule, EdgeTests, FdrMethod

HOCHBERG, YEKUTIELI = FdrMethod.BENJAMINI_HOCHBERG, FdrMethod.BENJAMINI_YEKUTIELI
# Rows that have both columns of a pair.
NUM_ROWS = 12
EDGE = Edge(0, 1, -0.5, 0.5, 0.5, selected=True, n_pairwise=10)


def three_pairs(
    correlation: list[float],
    error: list[float],
    rule: DiscoveryRule,
    null_error: list[float] | None = None,
) -> EdgeTests:
    """Return the tests of the three pairs of three columns: (0, 1), (0, 2), (1, 2)."""
    matrix, null = torch.eye(3, dtype=torch.float64), torch.zeros((3, 3), dtype=torch.float64)
    covariance = torch.zeros((3, 3, 3), dtype=torch.float64)
    for (i, j), value, each in zip([(0, 1), (0, 2), (1, 2)], correlation, error, strict=True):
        matrix[i, j] = matrix[j, i] = value
        covariance[i, j, j] = covariance[j, i, i] = each**2
    for (i, j), each in zip([(0, 1), (0, 2), (1, 2)], null_error or error, strict=True):
        null[i, j] = null[j, i] = each
    return EdgeTests.of(Uncertainty(matrix, null, covariance), np.full((3, 3), NUM_ROWS), rule)


def test_p_values_and_intervals_are_those_of_student_s_distribution() -> None:
    tests = three_pairs([0.2201, 0.0, -0.5], [0.1, 0.1, 0.3], DiscoveryRule(0.1, HOCHBERG, 0.1))
    assert tests.p_value[0, 1] == pytest.approx(0.05, abs=1e-4)
    assert tests.p_value[0, 2] == 1
    assert tests.lower[0, 1] == pytest.approx(0, abs=1e-4)
    assert tests.upper[0, 1] == pytest.approx(0.4402, abs=1e-4)
    assert tests.lower[1, 2] == -1  # cut off there
    np.testing.assert_array_equal(tests.lower, tests.lower.T)
    beyond = three_pairs([1.2, -1.5, 0.0], [0.3, 0.1, 0.1], DiscoveryRule(0.1, HOCHBERG, 0.1))
    assert beyond.debiased[0, 1] == beyond.upper[0, 1] == 1
    assert beyond.p_value[0, 1] == pytest.approx(2 * t.sf(4, 11))
    assert (beyond.lower[0, 2], beyond.upper[0, 2]) == (-1, -1)


def test_the_test_goes_by_the_error_under_its_hypothesis_and_the_interval_by_its_own() -> None:
    rule = DiscoveryRule(0.1, HOCHBERG, 0.1)
    tests = three_pairs([0.3, 0.0, 0.0], [0.1] * 3, rule, null_error=[0.15] * 3)
    assert tests.p_value[0, 1] == pytest.approx(2 * t.sf(2, 11))
    assert tests.upper[0, 1] == pytest.approx(0.5201, abs=1e-4)


def test_q_values_are_those_of_the_procedures_definitions() -> None:
    """By hand: of sorted p-values, the least of p m / rank from each on; times 1 + ½ + ⅓."""
    z = [3.0, 2.5, 1.0]
    by_hand = 2 * t.sf(z, 11) * 3 / np.array([1, 2, 3])
    errors = [0.1 / x for x in z]
    for method, factor in ((HOCHBERG, 1.0), (YEKUTIELI, 1 + 1 / 2 + 1 / 3)):
        tests = three_pairs([0.1] * 3, errors, DiscoveryRule(0.1, method, 0.1))
        found = tests.q_value[[0, 0, 1], [1, 2, 2]]
        np.testing.assert_allclose(found, np.minimum(by_hand * factor, 1))


@pytest.mark.parametrize(
    ("lower", "upper", "q_value", "verdict"),
    [
        (0.02, 0.08, 0.01, Verdict.PRESENT),
        (-0.5, 1.0, 0.1, Verdict.PRESENT),
        (-1.0, 1.0, 0.01, Verdict.UNDECIDED),
        (-0.09, 0.09, 0.11, Verdict.ABSENT),
        (-0.09, 0.11, 0.11, Verdict.UNDECIDED),
        (-0.1, 0.05, 0.11, Verdict.UNDECIDED),
    ],
)
def test_a_verdict_goes_by_the_q_value_first_where_the_interval_says_anything(
    lower: float, upper: float, q_value: float, verdict: Verdict
) -> None:
    assert DiscoveryRule(0.1, HOCHBERG, 0.1).verdict(lower, upper, q_value) is verdict


def test_an_edge_is_judged_by_its_own_figures_and_stays_selected_as_it_was() -> None:
    tests = three_pairs([0.02, 0.5, 0.0], [0.1, 0.1, 0.1], DiscoveryRule(0.1, HOCHBERG, 0.1))
    judged = tests.judge(EDGE)
    assert (judged.debiased, judged.verdict) == (0.02, Verdict.UNDECIDED)
    assert judged.selected
    assert tests.judge(replace(EDGE, target=2)).verdict is Verdict.PRESENT


def test_a_pair_of_which_nothing_is_known_is_undecided() -> None:
    tests = three_pairs([np.nan, 0.5, 0.0], [0.1, 0.1, 0.1], DiscoveryRule(0.1, HOCHBERG, 0.1))
    assert tests.judge(EDGE) == replace(EDGE, verdict=Verdict.UNDECIDED)
    # And is not among those that q-values are adjusted for.
    assert tests.q_value[0, 2] == pytest.approx(2 * tests.p_value[0, 2])

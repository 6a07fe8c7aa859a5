"""What subsets of rows say of a network's stability, against correlations by hand."""

from typing import Any

import numpy as np
import pytest

from vnce_engine.inference.correlation_stability import (
    DROPPED,
    CorrelationStability,
    correlate,
    dropped_of,
)
from vnce_engine.inference.resamples import Failure, Network

NAN = float("nan")
VALUES = np.array([0.5, -0.3, 0.1, 0.2, 0.0, 0.4])  # of four columns
FEW = 4  # shares at which subsets agree, below


def network(values: Any, selected: Any = (1, 1, 0, 0, 0, 1), debiased: Any = None) -> Network:
    unknown = np.full(6, NAN) if debiased is None else np.array(debiased)
    return Network(np.array(values, dtype=float), unknown, np.array(selected, dtype=float))


def of(outcomes: list[Network | Failure], whole: Network | None = None) -> CorrelationStability:
    return correlate(outcomes, whole or network(VALUES), 4)


def turned(times: int = 1) -> list[Network | Failure]:
    """Return subsets that agree while few rows are dropped, and are the opposite from then on."""
    one = [network(VALUES if level < FEW else -VALUES) for level in range(len(DROPPED))]
    return [*one] * times


def test_shares_are_dropped_in_turn() -> None:
    assert [dropped_of(number) for number in (0, 9, 10, 19)] == [0.05, 0.75, 0.05, 0.75]
    assert list(DROPPED) == sorted(DROPPED)


def test_the_coefficient_is_the_largest_share_at_which_subsets_agree() -> None:
    found = of(turned(3))
    for statistic in (found.edges, found.expected_influence):
        assert statistic.coefficient == DROPPED[FEW - 1]
        np.testing.assert_allclose(statistic.mean, [1.0] * FEW + [-1.0] * (10 - FEW))
        np.testing.assert_array_equal(statistic.agreeing, [1.0] * FEW + [0.0] * (10 - FEW))
    # Sizes do not change with signs.
    assert found.strength.coefficient == DROPPED[-1]
    np.testing.assert_array_equal(found.n_requested, [3] * 10)
    assert found.failures == {}


def test_correlations_are_of_pairs_strengths_and_influences() -> None:
    other = np.array([0.4, -0.1, 0.3, 0.1, 0.2, 0.1])
    selected = np.array([1, 0, 1, 0, 0, 1])
    found = of([network(other, selected)] * 10)
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    expected = {"edges": np.corrcoef(VALUES, other)[0, 1]}
    sums = np.zeros((4, 4))  # strength and influence, whole and subset
    for k, (i, j) in enumerate(pairs):
        for column in (i, j):
            sums[0, column] += abs(VALUES[k]) * (k in (0, 1, 5))
            sums[1, column] += abs(other[k]) * selected[k]
            sums[2, column] += VALUES[k]
            sums[3, column] += other[k]
    expected["strength"] = np.corrcoef(sums[:2])[0, 1]
    expected["expected_influence"] = np.corrcoef(sums[2:])[0, 1]
    for name, correlation in expected.items():
        np.testing.assert_allclose(getattr(found, name).mean, correlation)


def test_estimates_without_bias_are_taken_where_they_are_known() -> None:
    whole = network(VALUES, debiased=[0.6, NAN, NAN, NAN, NAN, NAN])
    assert of([network([0.6, *VALUES[1:]])] * 10, whole).edges.mean[0] == pytest.approx(1.0)


def test_nineteen_of_twenty_are_enough_and_a_subset_without_a_network_does_not_agree() -> None:
    failing: list[Network | Failure] = [*turned(20)]
    failing[0] = Failure("refused: no")
    assert of(failing).edges.coefficient == DROPPED[FEW - 1]
    assert of(failing).edges.agreeing[0] == 0.95
    failing[FEW - 1] = failing[FEW + 9] = Failure("refused: no")
    found = of(failing)
    assert found.edges.coefficient == DROPPED[FEW - 2]
    assert found.failures == {"refused: no": 3}
    assert found.n_ok.tolist() == [19, 20, 20, 18, *[20] * 6]


def test_without_agreement_it_is_zero_and_without_a_statistic_none() -> None:
    opposite: list[Network | Failure] = [network(-VALUES)] * 10
    assert of(opposite).edges.coefficient == 0.0
    alone = of(turned(), network(VALUES, selected=[0] * 6))
    assert alone.strength.coefficient is None
    assert np.isnan(alone.strength.mean).all()
    assert alone.edges.coefficient == DROPPED[FEW - 1]
    assert of(turned(), network([NAN] * 6)).edges.coefficient is None


def test_agreement_beyond_a_share_without_it_does_not_count() -> None:
    some = turned()
    some[2] = network(-VALUES)
    assert of(some).edges.coefficient == DROPPED[1]


def test_a_subset_of_equal_strengths_is_uncorrelated_and_one_of_unknown_pairs_has_nothing() -> None:
    some = turned()
    some[0], some[1] = network(VALUES, selected=[0] * 6), network([NAN, *VALUES[1:]])
    found = of(some)
    assert (found.strength.mean[0], found.strength.coefficient) == (0.0, 0.0)
    assert found.edges.mean[0] == 1.0
    assert np.isnan(found.edges.mean[1])
    assert found.edges.agreeing[1] == 0.0


def test_shares_without_a_subset_say_nothing() -> None:
    found = of(turned()[:3])
    assert found.edges.coefficient == DROPPED[2]
    assert np.isnan(found.edges.agreeing[3:]).all()

"""Strength and expected influence of variables, with intervals."""

import math

import numpy as np
import pytest
import torch

from vnce_engine import GaussianVNCE
from vnce_engine.inference.centrality import centralities
from vnce_engine.inference.interval import Interval
from vnce_engine.inference.result import Edge, Uncertainty, Verdict

CORRELATION = torch.tensor([[1.0, 0.5, -0.3], [0.5, 1.0, 0.1], [-0.3, 0.1, 1.0]]).double()


def uncertainty(correlation: torch.Tensor = CORRELATION) -> Uncertainty:
    """Return one whose first column's two pairs have variances .04 and .01, covariance -.015."""
    covariance = torch.zeros((3, 3, 3)).double()
    covariance[0, 1:, 1:] = torch.tensor([[0.04, -0.015], [-0.015, 0.01]])
    covariance[1, 0, 0], covariance[2, 0, 0] = 0.04, 0.01
    covariance[1, 2, 2] = covariance[2, 1, 1] = 0.09
    return Uncertainty(correlation, torch.zeros(3, 3), covariance)


def edges(*present: tuple[int, int]) -> list[Edge]:
    pairs = [(0, 1), (0, 2), (1, 2)]
    verdicts = [Verdict.PRESENT if pair in present else Verdict.UNDECIDED for pair in pairs]
    return [
        Edge(*pair, 0.0, 0.0, 0.0, selected=False, n_pairwise=9, verdict=verdict)
        for pair, verdict in zip(pairs, verdicts, strict=True)
    ]


def test_strength_adds_the_sizes_of_present_pairs_and_influence_all_with_their_signs() -> None:
    first, second, third = centralities(uncertainty(), edges((0, 1), (0, 2)))
    assert (first.column, first.degree, second.degree, third.degree) == (0, 2, 1, 1)
    assert first.strength is not None
    assert first.expected_influence is not None
    assert first.strength.value == pytest.approx(0.8)
    assert first.expected_influence.value == pytest.approx(0.2)
    # Of a - b the covariance counts twice with its sign turned.
    width = 1.959964 * math.sqrt(0.04 + 0.01 + 2 * 0.015)
    assert first.strength.upper - first.strength.value == pytest.approx(width, rel=1e-6)
    width = 1.959964 * math.sqrt(0.04 + 0.01 - 2 * 0.015)
    assert first.expected_influence.value - first.expected_influence.lower == pytest.approx(
        width, rel=1e-6
    )
    assert second.strength is not None
    assert second.strength.lower == pytest.approx(0.5 - 1.959964 * 0.2, rel=1e-6)


def test_a_variable_without_a_present_pair_has_no_strength() -> None:
    assert centralities(uncertainty(), edges())[1].strength == Interval(0.0, 0.0, 0.0)


def test_what_rests_on_an_unknown_pair_is_unknown() -> None:
    correlation = CORRELATION.clone()
    correlation[0, 2] = correlation[2, 0] = np.nan
    first, second, _ = centralities(uncertainty(correlation), edges((0, 1)))
    assert first.expected_influence is None
    assert first.strength is not None
    assert first.strength.value == pytest.approx(0.5)
    assert second.expected_influence is not None


@pytest.mark.slow
def test_the_intervals_cover_over_tables() -> None:
    """Within four standard errors of .95, of a chain of five columns with 400 rows each.

    Every pair of its chain is found present in every table, so that its strengths are the truth's.
    """
    precision = np.eye(5) * 1.25 + np.diag([-0.5] * 4, 1) + np.diag([-0.5] * 4, -1)
    rho = -precision / 1.25 + 2 * np.eye(5) - np.eye(5)
    np.fill_diagonal(rho, 0.0)
    covered: dict[str, list[bool]] = {"strength": [], "expected_influence": []}
    for seed in range(60):
        rng = np.random.default_rng([seed, 3])
        X = rng.multivariate_normal(np.zeros(5), np.linalg.inv(precision), 400)
        model = GaussianVNCE(penalty=0.3).fit(X)
        assert model.centrality_ is not None
        present = {(e.source, e.target) for e in model.edges_ if e.verdict == "present"}
        assert present >= {(i, i + 1) for i in range(4)}
        false = {column for pair in present if pair[1] != pair[0] + 1 for column in pair}
        for found, row in zip(model.centrality_, rho, strict=True):
            influence, strength = found.expected_influence, found.strength
            assert influence is not None
            assert strength is not None
            covered["expected_influence"].append(influence.lower <= row.sum() <= influence.upper)
            if found.column not in false:
                covered["strength"].append(strength.lower <= np.abs(row).sum() <= strength.upper)
    for shares in covered.values():
        error = math.sqrt(0.95 * 0.05 / len(shares))
        assert abs(np.mean(shares) - 0.95) < 4 * error

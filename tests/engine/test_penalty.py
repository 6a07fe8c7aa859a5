"""The penalties by their formulas, written out for one small matrix."""

import math

import pytest
import torch

from vnce_engine.penalty import Penalty, PenaltyKind

# K = [[2, 0.3], [0.3, 1]] with k0 = (1, 2): kappa_12 = 0.3 / sqrt(2), K_ii / k0_i = (2, 0.5).
PRECISION = torch.tensor([[2.0, 0.3], [0.3, 1.0]], dtype=torch.float64)
INVERSE_K0 = torch.tensor([1.0, 0.5], dtype=torch.float64)
KAPPA_SQUARED = 0.09 / 2
DISPERSION = 0.75**2 + 0.75**2
STRENGTH, NUM_ROWS = 0.7, 250
PER_ROW = 1000 / NUM_ROWS


def value(kind: PenaltyKind, strength: float = STRENGTH) -> float:
    return float(Penalty(strength, kind, INVERSE_K0, NUM_ROWS).value(PRECISION))


def test_a_ridge_is_half_the_sum_of_squared_interactions_and_the_diagonal_s_dispersion() -> None:
    expected = STRENGTH / 2 * KAPPA_SQUARED + 0.25 / 2 * DISPERSION
    assert value(PenaltyKind.RIDGE) == pytest.approx(PER_ROW * expected, rel=1e-12)


def test_the_adaptive_penalty_is_logarithmic_beyond_a_twentieth() -> None:
    pair = STRENGTH * 0.05**2 / 2 * math.log(1 + KAPPA_SQUARED / 0.05**2)
    expected = pair + 0.25 / 2 * DISPERSION
    assert value(PenaltyKind.ADAPTIVE) == pytest.approx(PER_ROW * expected, rel=1e-12)


@pytest.mark.parametrize("kind", PenaltyKind)
def test_a_strength_of_zero_is_no_penalty(kind: PenaltyKind) -> None:
    assert value(kind, 0.0) == 0.0

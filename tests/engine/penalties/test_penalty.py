"""The penalties by their formulas, written out for one small matrix."""

import math
from typing import get_args

import pytest
import torch

from vnce_engine.distributions.information import to_slope, upper_triangle
from vnce_engine.penalties.penalty import Penalty, PenaltyKind, PenaltyName

# K = [[2, 0.3], [0.3, 1]] with k0 = (1, 2): kappa_12 = 0.3 / sqrt(2), K_ii / k0_i = (2, 0.5).
PRECISION = torch.tensor([[2.0, 0.3], [0.3, 1.0]], dtype=torch.float64)
INVERSE_K0 = torch.tensor([1.0, 0.5], dtype=torch.float64)
KAPPA_SQUARED = 0.09 / 2
# K_ii / k0_i are far apart in units of a fifth, so that the centre is at the lower one, their
# median, but for the little that the other draws it: it is found where its slope is zero.
SCALE = 0.2


def dispersion() -> float:
    """Return sum u² log(1 + delta²/u²) at the centre, found by its own equation."""
    low, high = 0.5, 1.0
    for _ in range(200):  # halving, between the lower one and the middle of the two
        centre = 0.5 * (low + high)
        slope = sum((x - centre) / (1 + ((x - centre) / SCALE) ** 2) for x in (0.5, 2.0))
        low, high = (centre, high) if slope > 0 else (low, centre)
    return sum(SCALE**2 * math.log(1 + ((x - centre) / SCALE) ** 2) for x in (0.5, 2.0))


DISPERSION = dispersion()
STRENGTH, NUM_ROWS = 0.7, 250
PER_ROW = 1000 / NUM_ROWS


ROUNDING = 1e-11


def value(kind: PenaltyKind, strength: float = STRENGTH) -> float:
    return float(Penalty(strength, kind, INVERSE_K0, NUM_ROWS).value(PRECISION))


def test_a_ridge_is_half_the_sum_of_squared_interactions_and_the_diagonal_s_dispersion() -> None:
    expected = STRENGTH / 2 * KAPPA_SQUARED + 0.25 / 2 * DISPERSION
    assert value(PenaltyKind.RIDGE) == pytest.approx(PER_ROW * expected, rel=1e-12)


def test_a_centred_ridge_of_one_pair_is_the_diagonal_s_dispersion_four_times_as_strong() -> None:
    # One interaction is its own mean, so that nothing of it is shrunk.
    assert value(PenaltyKind.CENTRED_RIDGE) == pytest.approx(PER_ROW / 2 * DISPERSION, rel=1e-12)


def test_the_adaptive_penalty_is_logarithmic_beyond_a_twentieth() -> None:
    pair = STRENGTH * 0.05**2 / 2 * math.log(1 + KAPPA_SQUARED / 0.05**2)
    expected = pair + 0.25 / 2 * DISPERSION
    assert value(PenaltyKind.ADAPTIVE) == pytest.approx(PER_ROW * expected, rel=1e-12)


def test_an_l1_penalty_is_the_sum_of_absolute_interactions_and_the_diagonal_s_dispersion() -> None:
    expected = STRENGTH * math.sqrt(KAPPA_SQUARED) + 0.25 / 2 * DISPERSION
    assert value(PenaltyKind.L1) == pytest.approx(PER_ROW * expected, rel=1e-12)


def test_the_barrier_compares_k_with_one_that_is_further_from_indefinite() -> None:
    penalty = Penalty(0.0, PenaltyKind.RIDGE, INVERSE_K0, NUM_ROWS, barrier_rows=3.0)
    determinant = 2 * 1 - 0.3**2
    shifted = (2 + 16 * 1) * (1 + 16 * 2) - 0.3**2  # K_ii + (1000 / n)² k0_i
    assert float(penalty.value(PRECISION)) == pytest.approx(
        3.0 / NUM_ROWS * math.log(shifted / determinant), rel=1e-12
    )
    indefinite = torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=torch.float64)
    assert float(penalty.value(indefinite)) == math.inf


def test_the_barrier_fades_far_from_an_indefinite_k_and_not_near_it() -> None:
    num_rows = 50_000  # the shift is 1/2500 of k0
    barrier = Penalty(0.0, PenaltyKind.RIDGE, INVERSE_K0, num_rows, barrier_rows=1.0)
    slopes = []
    for interaction in (0.3, math.sqrt(2) - 1e-9):  # K is singular at the root of 2
        precision = torch.tensor([[2.0, interaction], [interaction, 1.0]], dtype=torch.float64)
        of_determinant = -torch.linalg.inv(precision)[0, 1] / num_rows
        slopes.append(float(barrier.gradient(precision)[0, 1] / of_determinant))
    far, near = slopes
    assert 0 < far < 2e-3
    assert near == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("kind", PenaltyKind)
def test_a_strength_of_zero_is_no_penalty(kind: PenaltyKind) -> None:
    assert value(kind, 0.0) == 0.0


@pytest.mark.parametrize("barrier_rows", [0.0, 2.0])
@pytest.mark.parametrize("kind", PenaltyKind)
def test_gradient_and_curvature_are_derivatives_of_the_value(
    kind: PenaltyKind, barrier_rows: float
) -> None:
    generator = torch.Generator().manual_seed(8)
    noise = torch.randn(4, 4, dtype=torch.float64, generator=generator)
    # Within a twentieth of the diagonal, where the adaptive penalty is convex.
    precision = torch.eye(4, dtype=torch.float64) + 0.01 * (noise + noise.mT)
    inverse_k0 = 0.5 + torch.rand(4, dtype=torch.float64, generator=generator)
    # Equal K_ii / k0_i: where they differ the diagonal's penalty is concave in part, which its
    # curvature leaves out.
    precision.diagonal().copy_(1 / inverse_k0)
    penalty = Penalty(STRENGTH, kind, inverse_k0, NUM_ROWS, barrier_rows)
    variable = precision.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(penalty.value(variable), variable)
    torch.testing.assert_close(penalty.gradient(precision), gradient, rtol=0, atol=ROUNDING)

    direction = torch.randn(4, 4, dtype=torch.float64, generator=generator)
    direction = direction + direction.mT
    _, product = torch.autograd.functional.hvp(penalty.value, precision, direction)
    curvature = penalty.curvature(precision)
    torch.testing.assert_close(curvature.product(direction), product, rtol=0, atol=ROUNDING)
    for i in range(4):
        for j in range(i + 1):
            unit = torch.zeros(4, 4, dtype=torch.float64)
            unit[i, j] = unit[j, i] = 1.0
            form = (unit * curvature.product(unit)).sum() / (1 if i == j else 2)
            torch.testing.assert_close(curvature.diagonal()[i, j], form)


@pytest.mark.parametrize("kind", PenaltyKind)
def test_the_slope_of_an_uneven_diagonal_is_its_penalty_s_too(kind: PenaltyKind) -> None:
    inverse_k0 = torch.tensor([0.5, 1.0, 2.0, 0.1], dtype=torch.float64)
    precision = 0.02 + torch.diag(torch.tensor([2.2, 1.0, 0.45, 60.0], dtype=torch.float64))
    penalty = Penalty(STRENGTH, kind, inverse_k0, NUM_ROWS)
    gradient, step = penalty.gradient(precision), 1e-6
    for i in range(4):
        unit = torch.zeros(4, 4, dtype=torch.float64)
        unit[i, i] = step
        slope = (penalty.value(precision + unit) - penalty.value(precision - unit)) / (2 * step)
        # Central differences err by step² and by rounding of the value over the step.
        torch.testing.assert_close(gradient[i, i], slope, rtol=1e-6, atol=1e-9)


def test_a_diagonal_entry_far_from_the_others_is_pulled_hardly_at_all() -> None:
    ones = torch.ones(5, dtype=torch.float64)
    penalty = Penalty(STRENGTH, PenaltyKind.RIDGE, ones, NUM_ROWS)
    near, far = (
        penalty.gradient(torch.diag(torch.tensor([1.0, 1.0, 1.0, 1.0, x], dtype=torch.float64)))
        for x in (1.2, 50.0)
    )
    # r delta / (1 + delta²/u²): r u / 2 at its steepest, delta = u, and about r u² / delta beyond.
    assert float(near[4, 4]) == pytest.approx(0.25 * PER_ROW * 0.1, rel=0.2)
    assert float(far[4, 4]) == pytest.approx(0.25 * PER_ROW * 0.04 / 49, rel=0.01)


def test_a_relaxed_penalty_is_a_ridge_that_spares_what_was_strong() -> None:
    ones = torch.ones(3, dtype=torch.float64)
    strong, weak = 0.5, 0.01
    first = torch.eye(3, dtype=torch.float64)
    first[0, 1] = first[1, 0] = strong
    first[0, 2] = first[2, 0] = weak
    penalty = Penalty(STRENGTH, PenaltyKind.ADAPTIVE, ones, NUM_ROWS)
    relaxed = penalty.relaxed(first)
    expected = sum(
        STRENGTH * PER_ROW / 2 * k**2 / (1 + (k / 0.05) ** 2) ** 2 for k in (strong, weak)
    )
    assert float(relaxed.value(first)) == pytest.approx(expected, rel=1e-12)
    # Slopes beside the adaptive penalty's: a hundredth at the strong one, nearly all at the weak.
    shares = relaxed.gradient(first)[0] / penalty.gradient(first)[0]
    assert float(shares[1]) == pytest.approx(1 / (1 + (strong / 0.05) ** 2), rel=1e-12)
    assert float(shares[2]) > 0.95
    # Not relaxed, it has the same slope at the estimate that its weights are of.
    torch.testing.assert_close(penalty.relaxed(first, 0.0).gradient(first), penalty.gradient(first))
    ridge = Penalty(STRENGTH, PenaltyKind.RIDGE, ones, NUM_ROWS)
    assert ridge.relaxed(first) is ridge


@pytest.mark.parametrize("kind", [kind for kind in PenaltyKind if kind is not PenaltyKind.L1])
def test_the_matrix_of_a_curvature_is_its_product(kind: PenaltyKind) -> None:
    generator = torch.Generator().manual_seed(8)
    noise = torch.randn(2, 4, 4, dtype=torch.float64, generator=generator)
    precision = torch.eye(4, dtype=torch.float64) + 0.05 * (noise[0] + noise[0].mT)
    inverse_k0 = 0.5 + torch.rand(4, dtype=torch.float64, generator=generator)
    curvature = Penalty(STRENGTH, kind, inverse_k0, NUM_ROWS, 2.0).curvature(precision)
    direction = torch.zeros(5, 5, dtype=torch.float64)
    direction[:-1, :-1] = noise[1] + noise[1].mT
    slope = torch.zeros(5, 5, dtype=torch.float64)
    slope[:-1, :-1] = curvature.product(direction[:-1, :-1])
    torch.testing.assert_close(
        curvature.matrix() @ direction[upper_triangle(len(direction), direction.device)],
        to_slope(slope),
    )


def test_a_bound_of_the_adaptive_penalty_touches_it_from_above() -> None:
    generator = torch.Generator().manual_seed(9)
    ones = torch.ones(4, dtype=torch.float64)
    penalty = Penalty(STRENGTH, PenaltyKind.ADAPTIVE, ones, NUM_ROWS)
    for size in (0.01, 0.1, 1.0):
        noise = torch.randn(2, 4, 4, dtype=torch.float64, generator=generator)
        start, way = size * (noise + noise.mT) + torch.diag(ones)
        bound = penalty.curvature(start, is_bound=True)
        first = (penalty.gradient(start) * way).sum()
        above = penalty.value(start) + first + 0.5 * (way * bound.product(way)).sum()
        assert penalty.value(start + way) <= above
        near = penalty.curvature(start)
        assert ((bound.pair_weights - near.pair_weights) >= 0).all()


def test_at_a_kink_the_ascent_is_what_the_slope_exceeds_the_penalty_s_by() -> None:
    penalty = Penalty(STRENGTH, PenaltyKind.L1, torch.ones(3, dtype=torch.float64), NUM_ROWS)
    threshold = 0.5 * STRENGTH * PER_ROW  # an entry has half of a pair's slope
    precision = torch.eye(3, dtype=torch.float64)
    precision[0, 1] = precision[1, 0] = -0.2
    gradient = torch.zeros(3, 3, dtype=torch.float64)
    gradient[0, 2] = gradient[2, 0] = -1.5 * threshold
    gradient[1, 2] = gradient[2, 1] = 0.9 * threshold
    ascent = penalty.ascent(precision, gradient)
    expected = torch.zeros(3, 3, dtype=torch.float64)
    expected[0, 1] = expected[1, 0] = threshold
    expected[0, 2] = expected[2, 0] = -0.5 * threshold
    torch.testing.assert_close(ascent, expected)
    signs = penalty.orthant(precision, ascent)
    assert torch.equal(signs, torch.tensor([[0.0, -1, -1], [-1, 0, 0], [-1, 0, 0]]).double())


def test_signatures_take_every_kind_by_its_name() -> None:
    assert get_args(PenaltyName) == tuple(PenaltyKind)

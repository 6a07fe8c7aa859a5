"""What Newton's method needs of an objective of complete rows: its value, slope and curvature."""

import numpy as np
import pytest
import torch
from torch import Tensor

from vnce_engine.comparators.columnwise import ColumnwiseCurvature
from vnce_engine.comparators.lyapunov import LyapunovPreconditioner
from vnce_engine.comparators.maximise import CompleteSample
from vnce_engine.comparators.pseudo_likelihood import PseudoLikelihood
from vnce_engine.comparators.score_matching import ScoreMatching, Weight
from vnce_engine.optim.constraints import Constraints
from vnce_engine.penalties.penalty import Penalty, PenaltyCurvature, PenaltyKind
from vnce_engine.runtime.progress import Progress

SILENT = Progress(None)
D = 3
CENTRE = torch.tensor([0.6, -1.0, 0.0], dtype=torch.float64)
STEP = 1e-5


@pytest.fixture(params=["pseudo-likelihood", *Weight])
def sample(request: pytest.FixtureRequest) -> CompleteSample:
    rows = torch.from_numpy(np.abs(np.random.default_rng(1).normal(size=(D, 40))))
    if request.param == "pseudo-likelihood":
        return PseudoLikelihood.of(rows, CENTRE)
    return ScoreMatching.of(rows, CENTRE, Weight(request.param), SILENT)


@pytest.fixture
def theta() -> Tensor:
    """Return A (d + 1, d + 1), c zero."""
    theta = torch.eye(D + 1, dtype=torch.float64) + 0.3
    theta[:-1, -1] = theta[-1, :-1] = torch.tensor([0.7, -0.4, 0.1])
    theta[-1, -1] = 0.0
    return theta


def directions() -> list[tuple[int, int, Tensor]]:
    """Return the symmetric matrices with ones at (i, j) and (j, i), those of K and h."""
    found = []
    for i in range(D):
        for j in range(i, D + 1):
            direction = torch.zeros(D + 1, D + 1, dtype=torch.float64)
            direction[i, j] = direction[j, i] = 1.0
            found.append((i, j, direction))
    return found


def no_penalty() -> PenaltyCurvature:
    return penalty_of_the_diagonal(0.0)


def penalty_of_the_diagonal(strength: float) -> PenaltyCurvature:
    """Return the penalty's curvature where it has flattened out for all interactions."""
    ones = torch.ones(D, dtype=torch.float64)
    return Penalty(strength, PenaltyKind.ADAPTIVE, ones, 40).curvature(torch.ones(D, D).double())


def constraints() -> Constraints:
    return Constraints(True, torch.full((D,), 0.05, dtype=torch.float64), has_constant=False)


def curvature_of(sample: CompleteSample, theta: Tensor) -> ColumnwiseCurvature:
    curvature = sample.curvature(theta, no_penalty(), constraints().estimated())
    assert isinstance(curvature, ColumnwiseCurvature)
    return curvature


def test_the_gradient_is_that_of_the_value(sample: CompleteSample, theta: Tensor) -> None:
    _, gradient = sample.terms(theta, SILENT)
    assert torch.equal(gradient, gradient.mT)
    for _, _, direction in directions():
        above, below = (sample.terms(theta + s * direction, SILENT)[0] for s in (STEP, -STEP))
        # n third derivatives of order one times step² / 6, and rounding of about n eps / step.
        slope = (gradient * direction).sum()
        assert float(slope) == pytest.approx(float(above - below) / (2 * STEP), abs=1e-7)


def test_the_curvature_is_minus_the_hessian(sample: CompleteSample, theta: Tensor) -> None:
    curvature = curvature_of(sample, theta)
    for _, _, direction in directions():
        above, below = (sample.terms(theta + s * direction, SILENT)[1] for s in (STEP, -STEP))
        expected = (below - above) / (2 * STEP * sample.num_rows) * constraints().estimated()
        assert (curvature.product(direction, SILENT) - expected).abs().max() < 1e-8


def test_the_curvature_knows_its_diagonal(sample: CompleteSample, theta: Tensor) -> None:
    curvature = curvature_of(sample, theta)
    diagonal = curvature.diagonal()
    for i, j, direction in directions():
        product = curvature.product(direction, SILENT)
        assert float(diagonal[i, j]) == pytest.approx(float(product[i, j]), rel=1e-12)


@pytest.mark.parametrize("has_linear", [True, False])
@pytest.mark.parametrize("strength", [0.0, 1.0])
@pytest.mark.parametrize("unit", [1.0, 1e-12])
def test_the_preconditioner_inverts_a_sum_of_squares_of_columns_and_the_diagonal_s_penalty(
    has_linear: bool, strength: float, unit: float
) -> None:
    # Of f = ½ sum_j w_j E (V_jᵀa)² over symmetric V: columns that weigh differently, far from zero.
    # Where weights are small, the penalty is stiffer than they are by as much.
    rng = np.random.default_rng(3)
    rows = torch.from_numpy(rng.normal(size=(D, 50)) + np.array([[5.0], [0.0], [2.0]]))
    extended = torch.cat([rows, torch.ones(1, 50, dtype=torch.float64)])
    moment = extended @ extended.mT / 50
    weights = unit * torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64)
    penalty = penalty_of_the_diagonal(strength)
    estimated = Constraints(has_linear, weights, has_constant=False).estimated()
    step = torch.from_numpy(rng.normal(size=(D + 1, D + 1)))
    step = (step + step.mT) * estimated
    slopes = torch.zeros_like(step)
    slopes[:, :-1] = weights * (moment @ step[:, :-1])
    curved = 0.5 * (slopes + slopes.mT) * estimated
    curved[:-1, :-1] += penalty.product(step[:-1, :-1])
    preconditioner = LyapunovPreconditioner.of(
        moment, weights, penalty, estimated, has_linear=has_linear
    )
    found = preconditioner(curved)
    # The slopes of a penalty that is 1 / unit times as stiff hide those of the rows by as much.
    eps = torch.finfo(torch.float64).eps
    allowed = 1e-10 + 100 * strength * eps / unit
    assert (found - step).abs().max() < allowed
    assert (curved * found).sum() > 0

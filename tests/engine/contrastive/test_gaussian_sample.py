"""A Gaussian's objective over rows with gaps: value, slope and curvature by other ways."""

import numpy as np
import pytest
import torch
from torch import Tensor

from vnce_engine.contrastive.gaussian_problem import GaussianProblem
from vnce_engine.contrastive.gaussian_sample import GaussianSample, log_density
from vnce_engine.contrastive.objective import vnce_objective
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.gaussian import Gaussian
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.optim.surrogate import Surrogate
from vnce_engine.penalties.penalty import PenaltyKind
from vnce_engine.runtime.progress import Progress

COVARIANCE = np.array([[1.0, 0.6, -0.3], [0.6, 1.5, 0.2], [-0.3, 0.2, 0.8]])


def prepared(fraction: float) -> GaussianProblem:
    """Return a small table against as many noise rows."""
    rng = np.random.default_rng(3)
    X = rng.multivariate_normal(np.zeros(3), COVARIANCE, size=40)
    X[rng.random(X.shape) < fraction] = np.nan
    observations = Observations.from_array(X[~np.isnan(X).all(axis=1)])
    generator = torch.Generator().manual_seed(0)
    return GaussianProblem.prepare(observations, 2, "random", generator)


def surrogate(fraction: float, strength: float) -> tuple[Surrogate, Tensor]:
    """Return a small objective and an A away from its maximum."""
    problem = prepared(fraction)
    penalty = problem.penalty(strength, PenaltyKind.RIDGE, problem.num_rows, has_linear=True)
    A = torch.tensor(
        [
            [1.2, -0.3, 0.1, 0.4],
            [-0.3, 0.9, 0.2, -0.2],
            [0.1, 0.2, 1.5, 0.1],
            [0.4, -0.2, 0.1, 5.0],
        ],
        dtype=torch.float64,
    )
    constraints = problem.constraints(has_linear=True)
    return Surrogate(problem.sample, penalty, constraints), A


def objective(made: Surrogate, augmented: Tensor) -> Tensor:
    """Return the same objective by automatic differentiation's rules alone."""
    sample = made.sample
    assert isinstance(sample, GaussianSample)
    K, h, c = augmented[:-1, :-1], -augmented[:-1, -1], 0.5 * augmented[-1, -1]
    theta = QuadraticModel(K, h, c).packed()
    u = torch.where(sample.patterns[sample.pattern].unsqueeze(1), torch.nan, sample.values)
    log_ratio = Gaussian(3).log_marginal(theta, u.flatten(0, 1)).view_as(sample.log_noise)
    log_ratio = log_ratio - sample.log_noise
    data, noise = log_ratio[:, 0], log_ratio[:, 1:].flatten()
    return vnce_objective(
        data.unsqueeze(0), noise.unsqueeze(0), sample.nu
    ).total - made.penalty.value(K)


@pytest.mark.parametrize("fraction", [0.0, 0.4])
@pytest.mark.parametrize("strength", [0.0, 2.0])
def test_value_and_slope_are_those_of_the_nce_objective(fraction: float, strength: float) -> None:
    made, augmented = surrogate(fraction, strength)
    leaf = augmented.clone().requires_grad_(True)
    value = objective(made, leaf)
    (gradient,) = torch.autograd.grad(value, leaf)
    point = made.at(augmented, Progress(None))
    assert float(point.value) == pytest.approx(value.item(), rel=1e-12)
    # Mirror images move together.
    symmetric = 0.5 * (gradient + gradient.mT)
    torch.testing.assert_close(point.gradient, symmetric, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("strength", [0.0, 2.0])
def test_the_curvature_of_complete_rows_is_minus_the_second_derivative(strength: float) -> None:
    made, augmented = surrogate(0.0, strength)
    direction = torch.tensor([[1.0, 2, 0, 1], [2, -1, 1, 0], [0, 1, 2, 3], [1, 0, 3, -2]]).double()

    leaf = augmented.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(objective(made, leaf), leaf, create_graph=True)
    (along,) = torch.autograd.grad((gradient * direction).sum(), leaf)
    curvature = made.at(augmented, Progress(None)).curvature()
    # The penalty on the diagonal is concave where entries differ, which its curvature leaves out.
    _, of_penalty = torch.autograd.functional.hvp(
        made.penalty.value, augmented[:-1, :-1], direction[:-1, :-1]
    )
    convex = made.penalty.curvature(augmented[:-1, :-1]).product(direction[:-1, :-1])
    product = curvature.product(direction, Progress(None))
    product[:-1, :-1] += 0.5 * (of_penalty + of_penalty.mT) - convex
    torch.testing.assert_close(
        product,
        -0.5 * (along + along.mT),
        rtol=1e-8,
        atol=1e-10,
    )


def test_the_curvature_of_rows_with_gaps_is_that_of_their_weighted_slopes() -> None:
    made, augmented = surrogate(0.4, 0.0)
    sample = made.sample
    assert isinstance(sample, GaussianSample)
    log_ratio = log_density(augmented, sample.values, sample.pattern, sample.patterns)
    logits = (log_ratio - sample.log_noise - np.log(sample.nu)).flatten()
    weights = torch.sigmoid(logits) * torch.sigmoid(-logits) / sample.num_rows
    leaf = augmented.clone().requires_grad_(True)
    each = log_density(leaf, sample.values, sample.pattern, sample.patterns).flatten()
    slopes = torch.stack([torch.autograd.grad(row, leaf, retain_graph=True)[0] for row in each])
    curvature = made.at(augmented, Progress(None)).curvature()
    direction = torch.eye(4).double() + 0.5
    along = (slopes * direction).sum(dim=(1, 2)) * weights
    expected = torch.einsum("r,rij->ij", along, slopes)
    product = curvature.product(direction, Progress(None))
    torch.testing.assert_close(product, 0.5 * (expected + expected.mT), rtol=1e-10, atol=1e-12)
    # The diagonal is bounded from above, entry by entry.
    i, j = torch.triu_indices(4, 4)
    for row, column in zip(i.tolist(), j.tolist(), strict=True):
        unit = torch.zeros(4, 4).double()
        unit[row, column] = unit[column, row] = 1.0
        exact = (unit * curvature.product(unit, Progress(None))).sum()
        exact = exact / (1.0 if row == column else 2.0)
        assert curvature.diagonal()[row, column] >= exact * (1 - 1e-12)


def test_an_indefinite_precision_has_no_value() -> None:
    made, augmented = surrogate(0.4, 0.0)
    indefinite = augmented - 2 * torch.diag(torch.tensor([1.0, 1.0, 1.0, 0.0])).double()
    assert float(made.at(indefinite, Progress(None)).value) == -np.inf

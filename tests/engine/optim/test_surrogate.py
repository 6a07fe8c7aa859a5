"""The M-step's surrogate against its definition, differentiated by autograd."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import logsigmoid

from vnce_engine.contrastive.posterior import complete
from vnce_engine.contrastive.truncated_problem import Problem
from vnce_engine.data.observations import Observations
from vnce_engine.optim.surrogate import Surrogate
from vnce_engine.penalties.penalty import Penalty, PenaltyKind
from vnce_engine.runtime.progress import Progress
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)

QUIET = Progress(None)
# Sums of some hundred terms of order one in doubles.
ROUNDING = 1e-11


def prepared(fraction: float, noise_ratio: int) -> Problem:
    rng = np.random.default_rng(11)
    X = sample_truncated_gaussian(ring_precision(4, rng), 60, rng)
    observations = Observations.from_array(mask_completely_at_random(X, fraction, rng))
    generator = torch.Generator().manual_seed(5)
    return Problem.prepare(observations, noise_ratio, "random", generator)


def a_point(problem: Problem) -> torch.Tensor:
    """Return an A away from the start, symmetric, with K positive definite."""
    generator = torch.Generator().manual_seed(1)
    step = 0.1 * torch.randn(5, 5, dtype=torch.float64, generator=generator)
    return problem.start(has_linear=True) + step + step.mT


def surrogate_at(problem: Problem, augmented: torch.Tensor, kind: PenaltyKind) -> Surrogate:
    sample = problem.sample
    for block in sample.blocks:
        complete(block, augmented)
    penalty = problem.penalty(0.7, kind, problem.num_rows, has_linear=True)
    return Surrogate(sample, penalty, problem.constraints(has_linear=True))


def plain_value(surrogate: Surrogate, augmented: torch.Tensor) -> torch.Tensor:
    """Return J(A) as the class's docstring defines it, row by row and draw by draw."""
    sample = surrogate.sample
    total = augmented.new_zeros(())
    for block in sample.blocks:
        for k in range(block.num_draws):
            a = block.draws[:, k]
            log_ratio = -0.5 * torch.einsum("ib,ij,jb->b", a, augmented, a)
            log_ratio = log_ratio + block.log_ratio_offset[k] - math.log(sample.nu)
            sign = -1 if block.is_noise else 1
            total = total + logsigmoid(sign * log_ratio) @ block.draw_weight[k]
    return total / sample.num_rows - surrogate.penalty.value(augmented[:-1, :-1])


def symmetric(gradient: torch.Tensor) -> torch.Tensor:
    return 0.5 * (gradient + gradient.mT)


@pytest.mark.parametrize("kind", PenaltyKind)
@pytest.mark.parametrize("fraction", [0.0, 0.3])
def test_value_and_gradient_are_those_of_the_definition(kind: PenaltyKind, fraction: float) -> None:
    problem = prepared(fraction, 3)
    augmented = a_point(problem)
    surrogate = surrogate_at(problem, augmented, kind)
    point = surrogate.at(augmented, QUIET)
    variable = augmented.clone().requires_grad_()
    plain = plain_value(surrogate, variable)
    (gradient,) = torch.autograd.grad(plain, variable)

    torch.testing.assert_close(point.value, plain.detach(), rtol=ROUNDING, atol=0)
    torch.testing.assert_close(point.gradient, symmetric(gradient), rtol=0, atol=ROUNDING)


def test_curvature_is_the_negative_hessian_where_no_row_is_left_out() -> None:
    # Complete rows have one draw each, and a noise ratio of 3 is below what the Hessian takes.
    problem = prepared(0.0, 3)
    augmented = a_point(problem)
    surrogate = surrogate_at(problem, augmented, PenaltyKind.RIDGE)
    generator = torch.Generator().manual_seed(2)
    direction = symmetric(torch.randn(5, 5, dtype=torch.float64, generator=generator))
    _, hessian = torch.autograd.functional.hvp(
        lambda a: plain_value(surrogate, a), augmented, direction
    )

    product = surrogate.at(augmented, QUIET).curvature().product(direction, QUIET)

    # The penalty on the diagonal is concave where entries differ, which its curvature leaves out.
    precision = augmented[:-1, :-1]
    _, of_penalty = torch.autograd.functional.hvp(
        surrogate.penalty.value, precision, direction[:-1, :-1]
    )
    convex = surrogate.penalty.curvature(precision).product(direction[:-1, :-1])
    product[:-1, :-1] += symmetric(of_penalty) - convex
    torch.testing.assert_close(product, -symmetric(hessian), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("kind", PenaltyKind)
def test_with_missing_cells_curvature_is_the_negative_hessian_of_each_row_s_first_draw(
    kind: PenaltyKind,
) -> None:
    problem = prepared(0.3, 3)
    augmented = a_point(problem)
    surrogate = surrogate_at(problem, augmented, kind)
    assert any(block.num_draws > 1 for block in surrogate.sample.data)

    def first_draws(a: torch.Tensor) -> torch.Tensor:
        total = a.new_zeros(())
        for block in surrogate.sample.blocks:
            rows = block.draws[:, 0]
            log_ratio = block.log_ratio_offset[0] - 0.5 * torch.einsum("ib,ij,jb->b", rows, a, rows)
            sign = -1 if block.is_noise else 1
            total = total + logsigmoid(sign * (log_ratio - math.log(surrogate.sample.nu))).sum()
        return total / surrogate.sample.num_rows

    generator = torch.Generator().manual_seed(2)
    direction = symmetric(torch.randn(5, 5, dtype=torch.float64, generator=generator))
    _, hessian = torch.autograd.functional.hvp(first_draws, augmented, direction)
    curvature = surrogate.at(augmented, QUIET).curvature()

    product = curvature.product(direction, QUIET)

    # The penalty's own curvature is compared with autograd in test_penalty.py.
    product[:-1, :-1] -= surrogate.penalty.curvature(augmented[:-1, :-1]).product(
        direction[:-1, :-1]
    )
    torch.testing.assert_close(product, -symmetric(hessian), rtol=0, atol=ROUNDING)


def test_the_curvature_s_diagonal_is_half_its_quadratic_form_in_pairs() -> None:
    problem = prepared(0.3, 3)
    augmented = a_point(problem)
    curvature = surrogate_at(problem, augmented, PenaltyKind.ADAPTIVE).at(augmented, QUIET)
    curvature = curvature.curvature()
    diagonal = curvature.diagonal()
    for i in range(5):
        for j in range(i + 1):
            unit = torch.zeros(5, 5, dtype=torch.float64)
            unit[i, j] = unit[j, i] = 1.0
            form = (unit * curvature.product(unit, QUIET)).sum() / (1 if i == j else 2)
            assert float(diagonal[i, j]) == pytest.approx(float(form), rel=1e-10)


def test_fixed_entries_have_no_gradient() -> None:
    problem = prepared(0.3, 3)
    augmented = problem.start(has_linear=False)
    surrogate = surrogate_at(problem, augmented, PenaltyKind.RIDGE)
    surrogate = Surrogate(
        surrogate.sample, surrogate.penalty, problem.constraints(has_linear=False)
    )
    gradient = surrogate.at(augmented, QUIET).gradient
    assert (gradient[:-1, -1] == 0).all()
    assert float(gradient[-1, -1]) != 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", PenaltyKind)
def test_the_penalty_s_curvature_is_never_below_its_second_derivative(kind: PenaltyKind) -> None:
    generator = torch.Generator().manual_seed(3)
    precision = symmetric(torch.randn(4, 4, dtype=torch.float64, generator=generator)) * 0.2
    precision = precision + 2 * torch.eye(4, dtype=torch.float64)
    inverse_k0 = torch.rand(4, dtype=torch.float64, generator=generator) + 0.5
    penalty = Penalty(0.7, kind, inverse_k0, 250)
    for _ in range(20):
        direction = symmetric(torch.randn(4, 4, dtype=torch.float64, generator=generator))
        _, second = torch.autograd.functional.hvp(penalty.value, precision, direction)
        form = (direction * penalty.curvature(precision).product(direction)).sum()
        exact = (direction * second).sum()
        assert form >= exact - ROUNDING
        if kind is PenaltyKind.RIDGE:
            direction.fill_diagonal_(0.0)  # the diagonal's penalty is no ridge
            _, second = torch.autograd.functional.hvp(penalty.value, precision, direction)
            form = (direction * penalty.curvature(precision).product(direction)).sum()
            assert float(form) == pytest.approx(float((direction * second).sum()), rel=1e-10)


def test_a_strength_is_worth_the_same_number_of_rows_in_any_table() -> None:
    precision = torch.eye(3, dtype=torch.float64) + 0.3
    inverse_k0 = torch.ones(3, dtype=torch.float64)
    whole = [
        num_rows * Penalty(0.7, PenaltyKind.ADAPTIVE, inverse_k0, num_rows).value(precision)
        for num_rows in (100, 5000)
    ]
    torch.testing.assert_close(whole[0], whole[1])

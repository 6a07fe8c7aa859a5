"""BFGS on many small problems side by side."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

# Largest absolute entry of the gradient at which a problem is solved.
_TOLERANCE = 1e-7
# Share of the slope's promise that a step has to keep, and halvings before it is given up.
_SUFFICIENT = 1e-4
_MAX_HALVINGS = 30

# Takes parameters (a, p) and the numbers (a,) of the problems they belong to; returns (a,).
Objective = Callable[[Tensor, Tensor], Tensor]
# Hears the values (b,) after every iteration; whatever it raises ends the climb.
OnIteration = Callable[[Tensor], None]


@dataclass(frozen=True)
class Maxima:
    """Where the problems ended."""

    parameters: Tensor
    """(b, p)"""
    values: Tensor
    """(b,)"""
    converged: Tensor
    """bool (b,): whether the gradient vanishes."""


def maximise(
    objective: Objective,
    start: Tensor,
    max_iterations: int = 200,
    on_iteration: OnIteration | None = None,
) -> Maxima:
    """Raise b smooth objectives of p parameters each from `start` (b, p), by automatic gradients.

    A problem whose step brings no increase any more stays where it is. A trial point where the
    objective is not finite counts as infinitely bad. `on_iteration` hears of every iteration.
    """
    num_problems, p = start.shape
    best = start.detach().clone()
    values = start.new_empty(num_problems)
    converged = torch.zeros(num_problems, dtype=torch.bool)
    rows = torch.arange(num_problems)  # those still moving
    value, gradient = _value_and_gradient(objective, best, rows)
    values[rows] = value
    # Nothing is known of the curvature yet: the first step is no longer than 1.
    size = gradient.norm(dim=1).clamp(min=1.0)[:, None, None]
    inverse = torch.eye(p, dtype=start.dtype) / size
    for _ in range(max_iterations):
        solved = gradient.abs().amax(dim=1) < _TOLERANCE
        converged[rows[solved]] = True
        rows, value, gradient, inverse = (t[~solved] for t in (rows, value, gradient, inverse))
        if not len(rows):
            break
        direction = torch.einsum("bij,bj->bi", inverse, gradient)
        slope = (direction * gradient).sum(dim=1)
        step, found = _line_search(objective, best[rows], rows, direction, value, slope)
        rows, gradient, inverse, step = (t[found] for t in (rows, gradient, inverse, step))
        if not len(rows):
            break
        best[rows] += step
        value, new_gradient = _value_and_gradient(objective, best[rows], rows)
        values[rows] = value
        if on_iteration is not None:
            on_iteration(values.clone())
        inverse = _updated(inverse, step, gradient - new_gradient)
        gradient = new_gradient
    return Maxima(best, values, converged)


def _value_and_gradient(
    objective: Objective, parameters: Tensor, rows: Tensor
) -> tuple[Tensor, Tensor]:
    variable = parameters.detach().requires_grad_(True)
    value = objective(variable, rows)
    (gradient,) = torch.autograd.grad(value.sum(), variable)
    return value.detach(), gradient


def _line_search(
    objective: Objective,
    parameters: Tensor,
    rows: Tensor,
    direction: Tensor,
    value: Tensor,
    slope: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return a step (a, p) for each problem, halved until it keeps its promise, and bool (a,)."""
    size = torch.ones_like(value)
    found = torch.zeros_like(value, dtype=torch.bool)
    for _ in range(_MAX_HALVINGS):
        left = (~found).nonzero().squeeze(1)
        with torch.no_grad():
            trial = parameters[left] + size[left].unsqueeze(1) * direction[left]
            reached = objective(trial, rows[left])
        wanted = value[left] + _SUFFICIENT * size[left] * slope[left]
        found[left] = reached.isfinite() & (reached >= wanted)
        if found.all():
            break
        size[~found] *= 0.5
    return size.unsqueeze(1) * direction, found


def _updated(inverse: Tensor, step: Tensor, fall: Tensor) -> Tensor:
    """Return BFGS's new inverse Hessians (a, p, p) of the negative objectives.

    `fall` is by how much the gradient fell along `step`. Where it did not, the old one stays.
    """
    product = (step * fall).sum(dim=1)
    is_curved = product > 1e-12 * fall.square().sum(dim=1)
    rho = torch.where(is_curved, 1 / product, 0.0)[:, None, None]
    s, y = step.unsqueeze(2), fall.unsqueeze(2)
    left = torch.eye(step.shape[1], dtype=step.dtype) - rho * s @ y.mT
    new = left @ inverse @ left.mT + rho * s @ s.mT
    return torch.where(is_curved[:, None, None], new, inverse)

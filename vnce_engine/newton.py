"""The M-step: Newton's method, its equations solved by conjugate gradients without a matrix."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from vnce_engine.preconditioner import GaussianPreconditioner
from vnce_engine.progress import Progress
from vnce_engine.surface import Curvature, SurfacePoint

# Armijo's constant: the share of the promised first-order gain that a step must keep.
_SUFFICIENT_GAIN = 1e-4
_MAX_HALVINGS = 30
# Residual, relative to the gradient, at which Newton's equation counts as solved.
_FORCING = 0.1
_MAX_PRODUCTS = 50


class NewtonStep(NamedTuple):
    """Where a step of Newton's method led, and how far there is still to go."""

    point: SurfacePoint
    remaining: Tensor
    """About the step that is left: the preconditioned gradient there."""


def newton_step(point: SurfacePoint, progress: Progress) -> NewtonStep:
    """Climb a surface by one step from a `point` of it; stay there if no step gains.

    A step that would leave the region is projected back onto it, and a K_ii at its floor that the
    gradient presses against it takes no part. The value stays finite.
    Source: Bertsekas (1982), "Projected Newton methods for optimization problems with simple
    constraints", SIAM J. Control Optim. 20.
    """
    curvature = point.curvature()
    has_linear = point.surface.region.has_linear
    preconditioner = GaussianPreconditioner.of(curvature, has_linear)
    gradient = point.gradient * curvature.is_free
    direction = _newton_direction(gradient, curvature, preconditioner, progress)
    moved = _line_search(point, direction, progress)
    return NewtonStep(moved, preconditioner(moved.gradient * moved.is_free()))


def _newton_direction(
    gradient: Tensor,
    curvature: Curvature,
    preconditioner: Callable[[Tensor], Tensor],
    progress: Progress,
) -> Tensor:
    """Return an ascent direction that solves Newton's equation to a tenth of the gradient."""
    direction = torch.zeros_like(gradient)
    residual = gradient
    preconditioned = preconditioner(residual)
    search = preconditioned
    energy = (residual * preconditioned).sum()
    enough = _FORCING**2 * energy
    for _ in range(_MAX_PRODUCTS):
        if not energy > enough:
            break
        product = curvature.product(search, progress)
        step = energy / (search * product).sum()
        direction = direction + step * search
        residual = residual - step * product
        preconditioned = preconditioner(residual)
        previous, energy = energy, (residual * preconditioned).sum()
        search = preconditioned + (energy / previous) * search
    return 0.5 * (direction + direction.mT)


def _line_search(point: SurfacePoint, direction: Tensor, progress: Progress) -> SurfacePoint:
    """Return the first of ever shorter steps that gains enough, or `point` when none does."""
    surface, step = point.surface, 1.0
    for _ in range(_MAX_HALVINGS):
        target = surface.region.project(point.augmented + step * direction)
        moved = surface.at(target, progress)
        promised = ((target - point.augmented) * point.gradient).sum()
        if moved.value > point.value + _SUFFICIENT_GAIN * promised.clamp(min=0):
            return moved
        step /= 2
    return point

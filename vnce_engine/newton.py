"""The M-step: Newton's method, its equations solved by conjugate gradients without a matrix."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from vnce_engine.preconditioner import GaussianPreconditioner
from vnce_engine.progress import Progress
from vnce_engine.surface import Curvature, Surface, SurfacePoint

# Share of the way to the boundary K_ii = 0 that one step may go.
_BOUNDARY_SHARE = 0.9
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


def newton_step(surface: Surface, augmented: Tensor, progress: Progress) -> NewtonStep:
    """Climb `surface` by one step from `augmented`; stay there if no step gains.

    K keeps a positive diagonal. The value is finite if it was finite at `augmented`.
    """
    point = surface.at(augmented, progress)
    if not math.isfinite(point.value):
        return NewtonStep(point, point.gradient)
    curvature = point.curvature()
    preconditioner = GaussianPreconditioner.of(curvature, has_linear=bool(surface.is_free.all()))
    direction = _newton_direction(point.gradient, curvature, preconditioner, progress)
    moved = _line_search(point, direction, progress)
    return NewtonStep(moved, preconditioner(moved.gradient))


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
    slope = float((direction * point.gradient).sum())
    step = _largest_step(point.augmented, direction)
    for _ in range(_MAX_HALVINGS):
        moved = point.surface.at(point.augmented + step * direction, progress)
        if moved.value > point.value + _SUFFICIENT_GAIN * step * slope:
            return moved
        step /= 2
    return point


def _largest_step(augmented: Tensor, direction: Tensor) -> float:
    """Return 1, or less where a full step would take the diagonal of K to zero or below."""
    diagonal, change = augmented.diagonal()[:-1], direction.diagonal()[:-1]
    limits = torch.where(change < 0, -diagonal / change, torch.inf)
    return min(1.0, _BOUNDARY_SHARE * float(limits.min()))

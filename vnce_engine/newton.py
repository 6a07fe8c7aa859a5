"""The M-step: Newton's method, its equations solved by conjugate gradients without a matrix."""

import math
from dataclasses import replace
from typing import NamedTuple

from torch import Tensor

from vnce_engine.conjugate_gradients import FORCING, solve
from vnce_engine.orthant import orthant_target
from vnce_engine.preconditioner import GaussianPreconditioner
from vnce_engine.progress import Progress
from vnce_engine.surface import SurfacePoint

# Armijo's constant: the share of the promised first-order gain that a step must keep.
_SUFFICIENT_GAIN = 1e-4
_MAX_HALVINGS = 30


class NewtonStep(NamedTuple):
    """Where a step of Newton's method led, and how far there is still to go."""

    point: SurfacePoint
    remaining: Tensor
    """About the step that is left: the preconditioned gradient there, or the gradient itself where
    there is no curvature."""
    promised: float
    """What the whole step would gain to first order, twice its gain to second order; infinity where
    Newton's equations were not solved, or their solution, projected, does not lead uphill."""


def newton_step(point: SurfacePoint, progress: Progress, forcing: float = FORCING) -> NewtonStep:
    """Climb a surface by one step from a `point` of it; stay there if no step gains.

    Newton's equations are solved but for a `forcing` of their right-hand side; not under an L1
    penalty, which keeps to its own.

    A step that would leave the region is projected back onto it, and a K_ii at its floor that the
    gradient presses against it takes no part; `orthant.py` keeps to an L1 penalty's kinks. The
    value stays finite, so that no step leaves a barrier.
    Source: Bertsekas (1982), "Projected Newton methods for optimization problems with simple
    constraints", SIAM J. Control Optim. 20.
    """
    curvature = point.curvature()
    if not curvature.total_weight > 0:
        # Data and noise are told apart to the last bit, or taken for each other: no curvature says
        # how far a slope that is left leads.
        return NewtonStep(point, point.gradient, math.inf)
    region = point.surface.region
    # Made for all that is estimated: what may move is not the same before and after the step.
    preconditioner = GaussianPreconditioner.of(
        replace(curvature, is_free=region.estimated()),
        region.has_linear,
        curvature.mean() if region.has_linear and _is_sparse(point) else None,
    )
    if point.surface.penalty.has_kink:
        target = orthant_target(point, curvature, preconditioner, progress)
        way, is_solved = target - point.augmented, False
    else:
        gradient = point.gradient * curvature.is_free
        inner = preconditioner.restricted(curvature.is_free)
        way, is_solved = solve(gradient, curvature, inner, progress, forcing)
    moved = _line_search(point, way, progress)
    remaining = preconditioner.restricted(moved.is_free())(moved.gradient)
    promised = _promised(point, region.project(point.augmented + way))
    return NewtonStep(moved, remaining, promised if is_solved and promised >= 0 else math.inf)


def _is_sparse(point: SurfacePoint) -> bool:
    """Return whether many interactions stay at zero."""
    return point.surface.penalty.has_kink or point.surface.region.graph is not None


def _line_search(point: SurfacePoint, way: Tensor, progress: Progress) -> SurfacePoint:
    """Return the first of ever shorter steps along the `way` that gains enough, or `point` if none.

    Each is projected by itself. A short one crosses no floor and so leads uphill; the straight line
    to where the whole step is projected need not, as it leaves out only what crosses.
    """
    step = 1.0
    for _ in range(_MAX_HALVINGS):
        tried = point.surface.region.project(point.augmented + step * way)
        moved = point.surface.at(tried, progress)
        if moved.value > point.value + _SUFFICIENT_GAIN * max(_promised(point, tried), 0.0):
            return moved
        step /= 2
    return point


def _promised(point: SurfacePoint, augmented: Tensor) -> float:
    """Return what the surface would gain at `augmented` to first order."""
    return float(((augmented - point.augmented) * point.gradient).sum())

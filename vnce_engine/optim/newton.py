"""The M-step: Newton's method, its equations solved by conjugate gradients without a matrix."""

import math
from typing import NamedTuple

from torch import Tensor

from vnce_engine.optim.active_set import orthant_target
from vnce_engine.optim.conjugate_gradients import FORCING, solve
from vnce_engine.optim.surrogate import SurrogatePoint
from vnce_engine.runtime.progress import Progress

# Armijo's constant: the share of the predicted first-order gain that a step must keep.
_SUFFICIENT_GAIN = 1e-4
MAX_HALVINGS = 30
# Of a surrogate's value, relative.
_ROUNDING = 1e-9


class NewtonStep(NamedTuple):
    """Where a step of Newton's method led, and how far there is still to go."""

    point: SurrogatePoint
    remaining: Tensor
    """About the step that is left: the preconditioned gradient there, or the gradient itself where
    there is no curvature."""
    predicted_increase: float
    """What the whole step would gain to first order, twice its gain to second order; infinity where
    Newton's equations were not solved, or their solution, projected, does not lead uphill."""


def newton_step(
    point: SurrogatePoint,
    progress: Progress,
    forcing: float = FORCING,
    *,
    is_penalty_bound: bool = False,
) -> NewtonStep:
    """Maximise a surrogate by one step from a `point` of it; stay there if no step gains.

    Newton's equations are solved but for a `forcing` of their right-hand side; not under an L1
    penalty, which keeps to its own. For `is_penalty_bound` see `Penalty.curvature`.

    A step that violates the constraints is projected back onto them, and a K_ii at its lower bound
    that the gradient presses against it takes no part; `active_set.py` keeps to where an L1 penalty
    is not smooth. The
    value stays finite, so that no step leaves a barrier.
    Source: Bertsekas (1982), "Projected Newton methods for optimization problems with simple
    constraints", SIAM J. Control Optim. 20.
    """
    curvature = point.curvature(is_penalty_bound=is_penalty_bound)
    if not curvature.total_weight > 0:
        # Data and noise are told apart to the last bit, or taken for each other: no curvature says
        # how far a slope that is left leads.
        return NewtonStep(point, point.gradient, math.inf)
    constraints = point.surrogate.constraints
    # Made for all that is estimated: what may move is not the same before and after the step.
    preconditioner = curvature.preconditioner(constraints, is_sparse=_is_sparse(point))
    if point.surrogate.penalty.is_nonsmooth:
        target = orthant_target(point, curvature, preconditioner, progress)
        direction, is_solved = target - point.augmented, False
    else:
        gradient = point.gradient * curvature.is_free
        inner = preconditioner.restricted(curvature.is_free)
        direction, is_solved = solve(gradient, curvature, inner, progress, forcing)
    moved = _line_search(point, direction, progress)
    predicted = _predicted_increase(point, constraints.project(point.augmented + direction))
    if (
        moved is point
        and not point.surrogate.penalty.is_nonsmooth
        and not is_rounding(predicted, point)
    ):
        # Equations without a solution, as columns that are functions of others make them, lead
        # nowhere; the preconditioned gradient leads uphill.
        moved = _line_search(point, inner(gradient), progress)
    remaining = preconditioner.restricted(moved.is_free())(moved.gradient)
    return NewtonStep(moved, remaining, predicted if is_solved and predicted >= 0 else math.inf)


def is_rounding(gain: float, point: SurrogatePoint) -> bool:
    """Return whether a gain could not be told from rounding of the surrogate's value."""
    return 0 <= gain <= _ROUNDING * max(1.0, abs(float(point.value)))


def _is_sparse(point: SurrogatePoint) -> bool:
    """Return whether many interactions stay at zero."""
    return point.surrogate.penalty.is_nonsmooth or point.surrogate.constraints.graph is not None


def _line_search(point: SurrogatePoint, direction: Tensor, progress: Progress) -> SurrogatePoint:
    """Return the first of ever shorter steps in a `direction` that gains enough; `point` if none.

    Each is projected by itself. A short one crosses no floor and so leads uphill; the straight line
    to where the whole step is projected need not, as it leaves out only what crosses.
    """
    step = 1.0
    for _ in range(MAX_HALVINGS):
        tried = point.surrogate.constraints.project(point.augmented + step * direction)
        moved = point.surrogate.at(tried, progress)
        if moved.value > point.value + _SUFFICIENT_GAIN * max(
            _predicted_increase(point, tried), 0.0
        ):
            return moved
        step /= 2
    return point


def _predicted_increase(point: SurrogatePoint, augmented: Tensor) -> float:
    """Return what the surrogate would gain at `augmented` to first order."""
    return float(((augmented - point.augmented) * point.gradient).sum())

"""Newton's method on a sample of complete rows, up to the maximum of its objective."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from vnce_engine.comparators.exponential import Parameters
from vnce_engine.comparators.result import ScaledTable
from vnce_engine.contrastive.prepared import SMALLEST_DIAGONAL
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.optim.conjugate_gradients import STRICT_FORCING
from vnce_engine.optim.constraints import Constraints
from vnce_engine.optim.newton import NewtonStep, is_rounding, newton_step
from vnce_engine.optim.step_length import (
    leaves_rounding,
    length_in_standard_errors,
    scaled_change,
    share_done,
)
from vnce_engine.optim.surrogate import Sample, Surrogate, SurrogatePoint
from vnce_engine.runtime.progress import FitCancelledError, Progress

# Is told the share of the way, the number of steps and the value.
Report = Callable[[float, int, float], None]

_MAX_STEPS = 200
# Root mean square of a Newton step in standard errors, its equations solved strictly, that is the
# last one; what it leaves is about its square. Under an L1 penalty, whose steps promise nothing
# that could be counted on, the largest entry of a step, columns scaled to unit K_ii.
_LAST_STEP = 1e-4
_LAST_CHANGE = 1e-6
# A whole step gains half of what it promises to first order. Where a line search is left with less
# than this share, a penalty that flattens out may have promised it.
_POOR_GAIN = 0.1


class CompleteSample(Sample, Protocol):
    """Complete rows under an objective of theirs."""

    @property
    def centre(self) -> Tensor:
        """What rows are measured from (d,): A is [[K, K centre - h], ...]."""


@dataclass(frozen=True)
class Optimum:
    """Where a climb ended."""

    theta: Parameters
    value: float
    gradient_norm: float
    """Frobenius norm of the gradient in K and h, rows measured from the sample's centre, without
    what presses against a bound."""
    is_converged: bool
    is_cancelled: bool = False
    """Whether the caller asked to stop on the way."""


def maximise(
    sample: CompleteSample,
    start: Parameters,
    table: ScaledTable,
    progress: Progress,
    report: Report | None,
) -> Optimum:
    """Return the maximum of the sample's mean terms less the table's penalty, or how far it came.

    K_ii is at least a twentieth of k0. `report` is told the share of the way after each step, on a
    logarithmic scale, the number of the step, and the value.
    """
    floor = SMALLEST_DIAGONAL / table.penalty.inverse_k0
    constraints = Constraints(table.has_linear, floor, has_constant=False)
    centre = sample.centre.numpy()
    augmented = start.seen_from(centre).model().augmented()
    surrogate = Surrogate(sample, table.penalty, constraints)
    stage = progress.checkpoint.stage()
    augmented = constraints.project(augmented) if stage.saved is None else stage.saved
    ascent = _Ascent()
    point = surrogate.at(augmented, progress)
    is_cancelled = False
    try:
        while ascent.goes_on() and math.isfinite(point.value):
            step = _step(point, progress)
            ascent.note(step, point, _way(step, point))
            point = step.point
            stage.save(point.augmented)
            if report is not None:
                report(ascent.share_done(), ascent.num_steps, float(point.value))
    except FitCancelledError:
        is_cancelled = True
    estimate = QuadraticModel.from_augmented(point.augmented)
    return Optimum(
        Parameters.of(estimate).seen_from(-centre),
        float(point.value),
        float(torch.linalg.norm(point.gradient * point.is_free())),
        ascent.is_over and math.isfinite(point.value),
        is_cancelled,
    )


def _step(point: SurrogatePoint, progress: Progress) -> NewtonStep:
    """Take a step from a point; one that may be the last is solved strictly."""
    penalty = point.surrogate.penalty
    step = newton_step(point, progress)
    if penalty.is_concave_somewhere and _is_poor(step, point):
        bound = newton_step(point, progress, is_penalty_bound=True)
        step = bound if bound.point.value > step.point.value else step
    if not penalty.is_nonsmooth and _way(step, point) < 1:
        # A loosely solved step may be short only because it leaves out what is left to do.
        step = newton_step(point, progress, STRICT_FORCING)
    return step


def _way(step: NewtonStep, start: SurrogatePoint) -> float:
    """Return how many times as long a step, or what it leaves, is as the last one may be."""
    if not start.surrogate.penalty.is_nonsmooth:
        return length_in_standard_errors(step) / _LAST_STEP
    image = step.point.augmented
    parts = (image - start.augmented, step.remaining)
    return max(scaled_change(part, image) for part in parts) / _LAST_CHANGE


def _is_poor(step: NewtonStep, start: SurrogatePoint) -> bool:
    """Return whether a step gained far less than predicted, but for rounding."""
    return _falls_short(step, start) and not is_rounding(step.predicted_increase, start)


def _ends_in_rounding(step: NewtonStep, start: SurrogatePoint) -> bool:
    """Return whether a step shows that what is left is rounding, of the value or its slope.

    It promises no gain that could be told from rounding, and gains less still; or there is no step.
    """
    if step.point is start and leaves_rounding(step):
        return True
    return _falls_short(step, start) and is_rounding(step.predicted_increase, start)


def _falls_short(step: NewtonStep, start: SurrogatePoint) -> bool:
    return float(step.point.value - start.value) < _POOR_GAIN * step.predicted_increase


class _Ascent:
    """The state between steps."""

    def __init__(self) -> None:
        self.is_over = False
        """Whether the last step was short enough to be it, or lost in rounding."""
        self.num_steps = 0
        self._has_moved = True
        # Of the first step whose length could be told, and of the last one: see `_way`.
        self._first_ratio = self._last_ratio = math.inf

    def goes_on(self) -> bool:
        """Return whether another step may lead on."""
        return self._has_moved and not self.is_over and self.num_steps < _MAX_STEPS

    def note(self, step: NewtonStep, start: SurrogatePoint, ratio: float) -> None:
        """Take a step from `start`."""
        self._has_moved = step.point is not start
        self.is_over = ratio < 1 or _ends_in_rounding(step, start)
        self.num_steps += 1
        self._last_ratio = ratio
        if math.isinf(self._first_ratio):
            self._first_ratio = ratio

    def share_done(self) -> float:
        """Return the share of the way, on a logarithmic scale, from the first step to the last."""
        if not math.isfinite(self._last_ratio):
            return 0.0
        return share_done(self._first_ratio, self._last_ratio)

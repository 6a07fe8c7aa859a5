"""Newton's method on a sample of complete rows, up to the top of its surface."""

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from vnce_engine.comparators.exponential import Parameters
from vnce_engine.comparators.result import ScaledTable
from vnce_engine.conjugate_gradients import STRICT_FORCING
from vnce_engine.model import TruncatedGaussian
from vnce_engine.newton import NewtonStep, is_rounding, newton_step
from vnce_engine.prepared import SMALLEST_DIAGONAL
from vnce_engine.progress import Progress
from vnce_engine.region import Region
from vnce_engine.step_length import centred, leaves_rounding, scaled_change, standard_errors
from vnce_engine.surface import Sample, Surface, SurfacePoint

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
        """The means of the columns, and 1, (d + 1,)."""


@dataclass(frozen=True)
class Optimum:
    """Where a climb ended."""

    theta: Parameters
    value: float
    gradient_norm: float
    """Frobenius norm of the gradient in K and h, without what presses against a bound."""
    is_converged: bool


def climb(
    sample: CompleteSample, start: Parameters, table: ScaledTable, progress: Progress
) -> Optimum:
    """Return the maximum of the sample's mean terms less the table's penalty.

    K_ii is at least a twentieth of k0.
    """
    floor = SMALLEST_DIAGONAL / table.penalty.inverse_k0
    region = Region(table.free_linear, floor, has_constant=False)
    augmented = TruncatedGaussian(
        torch.from_numpy(start.precision), torch.from_numpy(start.linear), floor.new_zeros(())
    ).augmented()
    surface = Surface(sample, torch.zeros_like(augmented), table.penalty, region)
    ascent = _Ascent(region.project(augmented))
    end_step = progress.journal.begin_loop(ascent)
    point = surface.at(ascent.augmented, progress)
    centre = sample.centre if table.free_linear else torch.zeros_like(sample.centre)
    while ascent.goes_on() and math.isfinite(point.value):
        step = newton_step(point, progress)
        if table.penalty.is_concave_somewhere and _is_poor(step, point):
            bound = newton_step(point, progress, is_penalty_bound=True)
            step = bound if bound.point.value > step.point.value else step
        if not table.penalty.has_kink and _is_last(step, point, centre):
            # A loosely solved step may be short only because it leaves out what is left to do.
            step = newton_step(point, progress, STRICT_FORCING)
        has_moved = step.point is not point
        is_last = _is_last(step, point, centre) or (not has_moved and leaves_rounding(step))
        ascent.note(step, has_moved=has_moved, is_last=is_last)
        point = step.point
        end_step()
    estimate = TruncatedGaussian.from_augmented(point.augmented)
    return Optimum(
        Parameters(estimate.precision.numpy(), estimate.linear.numpy()),
        float(point.value),
        float(torch.linalg.norm(point.gradient * point.is_free())),
        ascent.is_over and math.isfinite(point.value),
    )


def _is_last(step: NewtonStep, start: SurfacePoint, centre: Tensor) -> bool:
    """Return whether a step, and what it leaves, is too short for another one."""
    if not start.surface.penalty.has_kink:
        return standard_errors(step) < _LAST_STEP
    image = step.point.augmented
    parts = (image - start.augmented, step.remaining)
    return max(scaled_change(centred(part, centre), image) for part in parts) < _LAST_CHANGE


def _is_poor(step: NewtonStep, start: SurfacePoint) -> bool:
    """Return whether a step gained far less than it promised, but for rounding."""
    gain = float(step.point.value - start.value)
    return gain < _POOR_GAIN * step.promised and not is_rounding(step.promised, start)


class _Ascent:
    """The state between steps."""

    def __init__(self, augmented: Tensor) -> None:
        self.augmented = augmented
        self.is_over = False
        """Whether the last step was short enough to be it."""
        self._num_steps = 0
        self._has_moved = True

    def goes_on(self) -> bool:
        """Return whether another step may lead on."""
        return self._has_moved and not self.is_over and self._num_steps < _MAX_STEPS

    def note(self, step: NewtonStep, *, has_moved: bool, is_last: bool) -> None:
        """Take a step."""
        self.augmented, self.is_over, self._has_moved = step.point.augmented, is_last, has_moved
        self._num_steps += 1

    def state(self) -> list[Tensor]:
        """Return all that later steps depend on."""
        return [
            self.augmented,
            torch.tensor([self.is_over, self._num_steps, self._has_moved], dtype=torch.float64),
        ]

    def restore(self, state: list[Tensor]) -> None:
        """Have what `state` returned."""
        self.augmented, numbers = state
        self.is_over, self._num_steps, self._has_moved = (
            bool(numbers[0]),
            int(numbers[1]),
            bool(numbers[2]),
        )

"""Variational EM: E- and M-steps in turn until the estimates stay where they are."""

import math
from collections.abc import Sequence

from torch import Tensor

from vnce_engine.contrastive.posterior import complete
from vnce_engine.contrastive.prepared import Fit
from vnce_engine.contrastive.row_blocks import Block
from vnce_engine.contrastive.truncated_sample import ContrastiveSample
from vnce_engine.optim.anderson import Acceleration
from vnce_engine.optim.conjugate_gradients import STRICT_FORCING
from vnce_engine.optim.constraints import Constraints
from vnce_engine.optim.newton import NewtonStep, newton_step
from vnce_engine.optim.step_length import (
    centred,
    column_units,
    length_in_standard_errors,
    scaled_change,
    share_done,
)
from vnce_engine.optim.surrogate import Surrogate, SurrogatePoint
from vnce_engine.penalties.penalty import Penalty
from vnce_engine.runtime.progress import Progress
from vnce_engine.runtime.reports import FitStatus

# Noise rows take new draws from q when A, columns scaled, has moved this far since the last ones.
# q matters to them only as a proposal, so that a slightly old one costs a little variance; and
# twice as far in runs of a loose tolerance, which only compare or come near. Not under L1, where
# small tables would settle less often.
_STALE = 0.05
_STALE_IN_LOOSE_RUNS = 0.1
_LOOSE_TOLERANCE = 1e-2
# Nats a row that the objective may fall from one cycle's start to the next's, drawn anew. An
# E-step lowers it a little; where it lowers it much, the M-step went where its draws say nothing.
_LARGEST_FALL = 0.1
# Half-way retreats in a row; after them the fall is the draws' own, and cycles go on from there.
_MAX_RETREATS = 5
# A cycle has settled the parameters too if its step is shorter than this many standard errors of
# theirs for each unit of the tolerance, in root mean square, and than this many in any case: new
# noise moves estimates by about .1. Single entries may move longer, wide tables' for very long.
_STEP = 7.5
_LARGEST_STEP = 0.0225
# An extrapolated diagonal below this share of the plain one is not to be trusted.
_SMALLEST_SHARE = 0.3


class Cycles(Fit[ContrastiveSample]):
    """EM's state: A, the path of the objective, and the surrogate's last point."""

    def __init__(self, augmented: Tensor, progress: Progress) -> None:
        super().__init__(augmented, progress)
        self._next = augmented
        self._acceleration = Acceleration()
        self._noise_at: Tensor | None = None

    def _go_on_from(self, augmented: Tensor) -> None:
        self.augmented = self._next = augmented

    def _cycle(
        self,
        sample: ContrastiveSample,
        penalty: Penalty,
        constraints: Constraints,
        tolerance: float,
        max_cycles: int,
    ) -> FitStatus:
        """Cycle until a cycle's scaled change, and what its M-step left, are below `tolerance`.

        Or until a step is short in standard errors; see `_STEP`. Reports progress to
        the share of the way, on a logarithmic scale, from the first change to the tolerance.
        """
        self._acceleration.change_map()
        self._noise_at = None
        accepted: SurrogatePoint | None = None
        num_retreats = 0
        first_ratio = math.nan
        is_loose = tolerance >= _LOOSE_TOLERANCE and not penalty.is_nonsmooth
        is_judged = not is_loose and not penalty.is_nonsmooth
        stale = _STALE_IN_LOOSE_RUNS if is_loose else _STALE
        for _ in range(max_cycles):
            start = self._next
            centre = self._e_step(sample, start, constraints, stale)
            point = Surrogate(sample, penalty, constraints).at(start, self._progress)
            has_fallen = accepted is not None and not point.value > accepted.value - _LARGEST_FALL
            if accepted is not None and has_fallen and num_retreats < _MAX_RETREATS:
                self._retreat(accepted.augmented)
                num_retreats += 1
                continue
            num_retreats = 0
            if not math.isfinite(point.value):
                return FitStatus.NON_FINITE
            accepted = point
            step = newton_step(point, self._progress)
            ratio = _convergence_ratio(step, start, centre, tolerance)
            if ratio < 1 and is_judged:
                # A loosely solved step may be short only because it leaves out what is left to do.
                strict = newton_step(point, self._progress, STRICT_FORCING)
                strict_ratio = _convergence_ratio(strict, start, centre, tolerance)
                if strict_ratio >= 1:
                    step, ratio = strict, strict_ratio
            image = step.point.augmented
            self._end_cycle(step.point)
            first_ratio = ratio if math.isnan(first_ratio) else first_ratio
            self._report(ratio, first_ratio)
            self._next = self._extrapolated(start, image, constraints, centre)
            if ratio < 1:
                return FitStatus.CONVERGED
        return FitStatus.MAX_ITERATIONS

    def _retreat(self, accepted: Tensor) -> None:
        """Go half-way back to the last point that the draws could follow, and draw noise anew."""
        self._acceleration.restart()
        self._noise_at = None
        self._next = self.augmented = 0.5 * (accepted + self._next)

    def _e_step(
        self, sample: ContrastiveSample, augmented: Tensor, constraints: Constraints, stale: float
    ) -> Tensor:
        """Complete the rows by draws under `augmented`; noise rows only where theirs are stale.

        Returns the centre (d + 1,) from which steps are measured, wherever columns lie.
        """
        self._complete(sample.data, augmented)
        centre = _centre(sample, constraints)
        noise_at = self._noise_at
        if noise_at is None or _change(augmented - noise_at, augmented, centre) > stale:
            self._complete(sample.noise, augmented)
            self._noise_at = augmented
        return centre

    def _complete(self, blocks: Sequence[Block], augmented: Tensor) -> None:
        for block in blocks:
            self._progress.spend(4 * block.work)
            complete(block, augmented)

    def _extrapolated(
        self, start: Tensor, image: Tensor, constraints: Constraints, centre: Tensor
    ) -> Tensor:
        # Residuals of c, large beside the others, would drown them; c follows K and h at once.
        units = column_units(image)
        units[-1, -1] = 0.0
        point = self._acceleration.next_point(start, image, lambda a: centred(a, centre) * units)
        if (point.diagonal() > _SMALLEST_SHARE * image.diagonal())[:-1].all():
            # What the M-step has set to zero stays there.
            point = constraints.project(0.5 * (point + point.mT) * (image != 0))
            if constraints.contains(point):
                return point
        self._acceleration.restart()
        return image

    def _report(self, ratio: float, first_ratio: float) -> None:
        share = share_done(first_ratio, ratio)
        self._progress.report(share, len(self.objective_path), self.objective_path[-1])


def _centre(sample: ContrastiveSample, constraints: Constraints) -> Tensor:
    """Return (d + 1,): the completed columns' means where h is free, 0 where not, and 1."""
    centre = sample.mean()
    if not constraints.has_linear:
        centre[:-1] = 0.0
    return centre


def _change(step: Tensor, augmented: Tensor, centre: Tensor) -> float:
    """Return the largest entry of a step in A, columns scaled, for rows measured from `centre`."""
    return scaled_change(centred(step, centre), augmented)


def _convergence_ratio(step: NewtonStep, start: Tensor, centre: Tensor, tolerance: float) -> float:
    """Return how many times as far as a fit may end: in single entries or in standard errors."""
    image = step.point.augmented
    change = max(_change(part, image, centre) for part in (image - start, step.remaining))
    settled = min(_STEP * tolerance, _LARGEST_STEP)
    return min(change / tolerance, length_in_standard_errors(step) / settled)

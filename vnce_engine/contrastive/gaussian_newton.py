"""Newton's method on the NCE objective of a Gaussian, whose q, the exact posterior, goes along."""

import math

from torch import Tensor

from vnce_engine.contrastive.gaussian_sample import GaussianSample, of_possible_spread
from vnce_engine.optim.constraints import Constraints
from vnce_engine.optim.newton import newton_step
from vnce_engine.optim.step_length import leaves_rounding, scaled_change, share_done
from vnce_engine.optim.surrogate import Surrogate, SurrogatePoint
from vnce_engine.penalties.penalty import Penalty
from vnce_engine.runtime.checkpoint import RunEntry
from vnce_engine.runtime.progress import Progress
from vnce_engine.runtime.reports import FitStatus


class GaussianCycles:
    """The state of a fit: A, the path of the objective, and the surrogate's last point.

    A cycle is one step, and K is positive definite at its end: a line search turns back from where
    it is not. `augmented` is the last finite estimate at every moment, also after an exception.
    """

    def __init__(self, augmented: Tensor, progress: Progress) -> None:
        self.augmented = augmented
        self.objective_path: list[float] = []
        self.point: SurrogatePoint | None = None
        self._progress = progress
        self._num_cycles = 0

    def run(
        self,
        sample: GaussianSample,
        penalty: Penalty,
        constraints: Constraints,
        tolerance: float,
        max_cycles: int,
    ) -> FitStatus:
        """Go on from where an interrupted fit was, or begin; climb as `_climb` does.

        Further calls go on from where the last one ended.
        """
        self._num_cycles = 0
        # Under other noise an estimated c may leave all rows told apart, and no slope to climb.
        self.augmented = of_possible_spread(self.augmented).normalised().augmented()
        if (earlier := self._progress.checkpoint.begin_run()) is not None:
            self.augmented = earlier.augmented
            self.objective_path = list(earlier.objective_path)
            self._num_cycles = earlier.num_cycles
            if earlier.status is not None:
                self._progress.checkpoint.note_run(earlier)
                return FitStatus(earlier.status)
        surrogate = Surrogate(sample, penalty, constraints)
        status = self._climb(surrogate, tolerance, max(max_cycles - self._num_cycles, 1))
        self._note(status)
        return status

    def state(self) -> list[Tensor]:
        """Return what the next run takes over from this one besides the estimate: nothing."""
        return []

    def restore(self, state: list[Tensor]) -> None:
        """Have what `state` returned."""

    def _climb(self, surrogate: Surrogate, tolerance: float, max_cycles: int) -> FitStatus:
        """Step until a step's scaled change, and what it left, are below `tolerance`.

        Or until no step gains: that is the top where the last one promised no more than rounding.
        """
        point = surrogate.at(self.augmented, self._progress)
        first_change = math.nan
        for _ in range(max_cycles):
            if not math.isfinite(point.value):
                return FitStatus.NON_FINITE
            step = newton_step(point, self._progress)
            ways = (step.point.augmented - point.augmented, step.remaining)
            change = max(scaled_change(way, step.point.augmented) for way in ways)
            first_change = change if math.isnan(first_change) else first_change
            has_moved = step.point is not point
            self.augmented, self.point = step.point.augmented, step.point
            self.objective_path.append(float(step.point.value))
            self._num_cycles += 1
            self._report(change, first_change, tolerance)
            self._note(None)
            if change < tolerance or (not has_moved and leaves_rounding(step)):
                return FitStatus.CONVERGED
            if not has_moved:
                return FitStatus.MAX_ITERATIONS
            point = step.point
        return FitStatus.MAX_ITERATIONS

    def _note(self, status: FitStatus | None) -> None:
        """Write down how the run stands."""
        entry = RunEntry(
            augmented=self.augmented,
            next_start=self.augmented,
            objective_path=tuple(self.objective_path),
            num_cycles=self._num_cycles,
            noise_at=self.augmented,
            status=status,
        )
        self._progress.checkpoint.note_run(entry)

    def _report(self, change: float, first_change: float, tolerance: float) -> None:
        """Report the share of the way, on a logarithmic scale, from the first change."""
        share = share_done(first_change / tolerance, change / tolerance)
        self._progress.report(share, len(self.objective_path), self.objective_path[-1])

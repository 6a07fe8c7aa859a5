"""Newton's method on the NCE objective of a Gaussian, whose q, the exact posterior, goes along."""

import math

from vnce_engine.contrastive.gaussian_sample import GaussianSample, of_possible_spread
from vnce_engine.contrastive.prepared import Fit
from vnce_engine.optim.constraints import Constraints
from vnce_engine.optim.newton import newton_step
from vnce_engine.optim.step_length import leaves_rounding, scaled_change, share_done
from vnce_engine.optim.surrogate import Surrogate
from vnce_engine.penalties.penalty import Penalty
from vnce_engine.runtime.reports import FitStatus


class GaussianCycles(Fit[GaussianSample]):
    """The state of a fit: A, the path of the objective, and the surrogate's last point.

    A cycle is one step, and K is positive definite at its end: a line search turns back from where
    it is not.
    """

    def _cycle(
        self,
        sample: GaussianSample,
        penalty: Penalty,
        constraints: Constraints,
        tolerance: float,
        max_cycles: int,
    ) -> FitStatus:
        """Step until a step's scaled change, and what it left, are below `tolerance`.

        Or until no step gains: that is the top where the last one promised no more than rounding.
        """
        # Under other noise an estimated c may leave all rows told apart, and no slope to climb.
        self.augmented = of_possible_spread(self.augmented).normalised().augmented()
        point = Surrogate(sample, penalty, constraints).at(self.augmented, self._progress)
        first_change = math.nan
        for _ in range(max_cycles):
            if not math.isfinite(point.value):
                return FitStatus.NON_FINITE
            step = newton_step(point, self._progress)
            ways = (step.point.augmented - point.augmented, step.remaining)
            change = max(scaled_change(way, step.point.augmented) for way in ways)
            first_change = change if math.isnan(first_change) else first_change
            has_moved = step.point is not point
            self._end_cycle(step.point)
            self._report(change, first_change, tolerance)
            if change < tolerance or (not has_moved and leaves_rounding(step)):
                return FitStatus.CONVERGED
            if not has_moved:
                return FitStatus.MAX_ITERATIONS
            point = step.point
        return FitStatus.MAX_ITERATIONS

    def _report(self, change: float, first_change: float, tolerance: float) -> None:
        """Report the share of the way, on a logarithmic scale, from the first change."""
        share = share_done(first_change / tolerance, change / tolerance)
        self._progress.report(share, len(self.objective_path), self.objective_path[-1])

"""What the fits of one path share: all but the strength of the penalty."""

from dataclasses import dataclass
from typing import Generic

from torch import Tensor

from vnce_engine.contrastive.prepared import Fit, PreparedTable, RowSampleT
from vnce_engine.optim.constraints import Constraints
from vnce_engine.penalties.penalty import Penalty, PenaltyKind
from vnce_engine.runtime.progress import Progress


@dataclass(frozen=True)
class Setting(Generic[RowSampleT]):
    """A problem, the shape of the penalty, whether h is estimated, the weight of the barrier."""

    problem: PreparedTable[RowSampleT]
    kind: PenaltyKind
    has_linear: bool
    barrier_rows: float = 0.0
    """Rows that the barrier against an indefinite K is worth; 0 for none."""

    def start(self) -> Tensor:
        """Return A to start from: that of a model without interactions, but for one kind.

        The adaptive penalty has many optima, and from there those with strong interactions are not
        found where it is strong. Other kinds have one, which is there where they are strong.
        """
        is_adaptive = self.kind is PenaltyKind.ADAPTIVE
        return self.problem.start(has_linear=self.has_linear, is_near_data=is_adaptive)

    def cycles(self, start: Tensor, progress: Progress) -> Fit[RowSampleT]:
        """Return a fit that is to go on from `start`."""
        return self.problem.cycles(start, progress)

    def penalty(self, strength: float | None, num_rows: int) -> Penalty:
        """Return the penalty of a fit to `num_rows` rows; a strength of None is none at all."""
        return self.problem.penalty(
            strength, self.kind, num_rows, self.barrier_rows, has_linear=self.has_linear
        )

    def constraints(self, graph: Tensor | None = None) -> Constraints:
        """Return where A may lie; `graph`, bool (d, d), has the interactions that may."""
        return self.problem.constraints(
            graph, has_linear=self.has_linear, is_definite=self.barrier_rows > 0
        )

"""Generalised score matching for densities on the positive orthant.

Minimises the expectation of sum_j ½ g(x_j) (d_j log p - d_j log p_data)², which integration by
parts turns into one over the data alone:

    J = E sum_j [ ½ g(x_j) s_j² + g(x_j) d_j s_j + g'(x_j) s_j ],   s_j = d_j log phi = h_j - K_j x.

g(0) = 0 takes the boundary's place: g(x) = x² is non-negative score matching (Hyvarinen, 2007; Lin,
Drton and Shojaie, 2016), and g(x) = min(x, 1) grows no further, which makes it more efficient (Yu,
Drton and Shojaie, 2019). J is quadratic in K and h and needs no normalising integral.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

import torch
from torch import Tensor

from vnce_engine.comparators.columnwise import ColumnwiseCurvature, symmetric, with_constant
from vnce_engine.penalties.penalty import PenaltyCurvature
from vnce_engine.runtime.progress import Progress

# Beyond it a capped weight grows no more. Of .5, 1, 2 and 3, all within the noise of simulated
# graphs, this one ranked edges best.
_CAP = 1.0


class Weight(StrEnum):
    """g, which is zero at the boundary."""

    CAPPED = "capped"
    SQUARE = "square"


@dataclass(frozen=True)
class ScoreMatching:
    """-J of a table, as sum_j b_jᵀ A_j - ½ A_jᵀ Q_j A_j, A_j = (K_j, -h_j)."""

    quadratic: Tensor
    """Q (d, d + 1, d + 1)"""
    slope: Tensor
    """b, the columns of (d + 1, d)"""
    centre: Tensor
    """(d,): what rows are measured from."""
    num_rows: int

    @classmethod
    def of(cls, rows: Tensor, centre: Tensor, kind: Weight, progress: Progress) -> "ScoreMatching":
        """Read the statistics of rows (d, n), columns at mean square 1, A for `centre` (d,)."""
        d, num_rows = rows.shape
        # s_j = -A_jᵀ (x - centre, 1).
        extended = with_constant(rows, centre)
        weight, slope = _weights(rows, kind)
        quadratic = rows.new_empty(d, d + 1, d + 1)
        for j, w in enumerate(weight):
            progress.spend(extended.numel() * (d + 1))
            quadratic[j] = (extended * w) @ extended.mT / num_rows
        linear = extended @ slope.mT / num_rows
        linear.diagonal().add_(weight.mean(dim=1))
        return cls(quadratic, linear, centre, num_rows)

    def terms(self, augmented: Tensor, progress: Progress) -> tuple[Tensor, Tensor]:
        """Return -J times the number of rows, and its gradient in A."""
        columns = augmented[:, :-1]
        product = self.product(columns, progress)
        value = ((self.slope - 0.5 * product) * columns).sum()
        return self.num_rows * value, self.num_rows * symmetric(self.slope - product)

    def curvature(
        self, augmented: Tensor, penalty: PenaltyCurvature, is_free: Tensor
    ) -> ColumnwiseCurvature:
        """Return the Hessian of J, the same everywhere, and the penalty's part."""
        return ColumnwiseCurvature(self, penalty, is_free)

    @property
    def weights(self) -> Tensor:
        """A column's mean g (d,)."""
        return self.quadratic[:, -1, -1]

    @property
    def moment(self) -> Tensor:
        """The mean (d + 1, d + 1) of aaᵀ over rows, weighted."""
        return self.quadratic.sum(dim=0) / self.weights.sum()

    def product(self, columns: Tensor, progress: Progress) -> Tensor:
        """Return every column's matrix times that column of `columns` (d + 1, d)."""
        progress.spend(self.quadratic.numel())
        product: Tensor = torch.einsum("jab,bj->aj", self.quadratic, columns)
        return product

    def diagonal(self) -> Tensor:
        """Return the diagonal of every column's matrix, the columns of (d + 1, d)."""
        return self.quadratic.diagonal(dim1=1, dim2=2).mT


@dataclass(frozen=True)
class JudgedScoreMatching(ScoreMatching):
    """The same, with the rows that it is of."""

    rows: Tensor
    """(d, n)"""
    kind: Weight

    @classmethod
    def read(cls, rows: Tensor, kind: Weight, progress: Progress) -> "JudgedScoreMatching":
        """Read the statistics of rows (d, n), and keep these."""
        read = ScoreMatching.of(rows, rows.new_zeros(len(rows)), kind, progress)
        return cls(read.quadratic, read.slope, read.centre, read.num_rows, rows, kind)

    def cell_values(self, augmented: Tensor) -> Tensor:
        """Return each cell's part of -J, (d, n)."""
        weight, slope = _weights(self.rows, self.kind)
        score = -augmented[:-1] @ with_constant(self.rows, self.centre)
        second = -augmented.diagonal()[:-1].unsqueeze(1)
        return -(0.5 * weight * score.square() + weight * second + slope * score)


def _weights(rows: Tensor, kind: Weight) -> tuple[Tensor, Tensor]:
    """Return g and its derivative, cell by cell."""
    match kind:
        case Weight.CAPPED:
            return rows.clamp(max=_CAP), (rows < _CAP).to(rows.dtype)
        case Weight.SQUARE:
            return rows.square(), 2 * rows
        case _:
            assert_never(kind)

"""Objectives that are sums over columns, each column's a function of its own K_j and h_j.

That is column j of A = [[K, -h], [-hᵀ, 2c]], and with a = (x, 1) all that a row says of it is the
pull of the others, h_j - K_jᵀx = -A_jᵀa. The symmetry of K ties the columns' functions together.

Rows may be measured from a centre: a = (x - centre, 1) and h - K centre in h's place make the same
pull. Of columns that lie q of their deviations given the others from zero, the pull's rounding is q
times as large otherwise, and that of products with rows, which tell K from h, q² times.
"""

from dataclasses import dataclass, replace
from typing import Protocol, Self

import torch
from torch import Tensor
from torch.nn.functional import pad

from vnce_engine.comparators.lyapunov import LyapunovPreconditioner
from vnce_engine.optim.constraints import Constraints
from vnce_engine.optim.symmetric_products import symmetric_part
from vnce_engine.penalties.penalty import PenaltyCurvature
from vnce_engine.runtime.progress import Progress


class ColumnHessians(Protocol):
    """For each column the second derivative of its own function, a (d + 1, d + 1) matrix."""

    @property
    def weights(self) -> Tensor:
        """About how much a row counts for each column (d,)."""

    @property
    def moment(self) -> Tensor:
        """The mean (d + 1, d + 1) of aaᵀ over rows: times a column's weight, about its matrix."""

    def product(self, columns: Tensor, progress: Progress) -> Tensor:
        """Return every column's matrix times that column of `columns` (d + 1, d)."""

    def diagonal(self) -> Tensor:
        """Return the diagonal of every column's matrix, the columns of (d + 1, d)."""


def symmetric(columns: Tensor) -> Tensor:
    """Return the gradient in A, under tr(A B), of slopes (d + 1, d) in each of its columns."""
    return symmetric_part(pad(columns, (0, 1)))


@dataclass(frozen=True)
class ColumnwiseCurvature:
    """The curvature of such a sum, and of the penalty."""

    hessians: ColumnHessians
    penalty: PenaltyCurvature
    is_free: Tensor

    @property
    def total_weight(self) -> float:
        """The weight of all columns; 0 where no function bends."""
        return float(self.hessians.weights.sum())

    def product(self, direction: Tensor, progress: Progress) -> Tensor:
        """Return the operator times a symmetric `direction`."""
        product = symmetric(self.hessians.product(direction[:, :-1], progress))
        product[:-1, :-1] += self.penalty.product(direction[:-1, :-1])
        return product * self.is_free

    def diagonal(self) -> Tensor:
        """Return its diagonal."""
        return symmetric(self.hessians.diagonal()) + pad(self.penalty.diagonal(), (0, 1, 0, 1))

    def restricted(self, is_free: Tensor) -> Self:
        """Return the operator on the entries that are free."""
        return replace(self, is_free=is_free)

    def preconditioner(
        self, constraints: Constraints, *, is_sparse: bool
    ) -> LyapunovPreconditioner:
        """Return an approximate inverse for all that is estimated, sparse or not."""
        return LyapunovPreconditioner.of(
            self.hessians.moment,
            self.hessians.weights,
            self.penalty,
            constraints.estimated(),
            has_linear=constraints.has_linear,
        )


def slopes(left: Tensor, rows: Tensor) -> Tensor:
    """Return (d + 1, d), mean over rows of a l_j, for l (d, n) and rows a (d + 1, n)."""
    product: Tensor = rows @ left.mT / rows.shape[1]
    return product


def with_constant(rows: Tensor, centre: Tensor) -> Tensor:
    """Return a = (x - centre, 1) of rows stored as columns, (d, n) to (d + 1, n)."""
    return torch.cat([rows - centre.unsqueeze(1), rows.new_ones(1, rows.shape[1])])

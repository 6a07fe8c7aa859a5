"""The curvature of an objective whose rows count through aᵀAa, a = (x, 1), alone."""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from vnce_engine.optim.constraints import Constraints
from vnce_engine.optim.preconditioner import GaussianPreconditioner
from vnce_engine.optim.symmetric_products import WeightedSquares, quadratics, symmetrised
from vnce_engine.penalties.penalty import PenaltyCurvature
from vnce_engine.runtime.progress import Progress


@dataclass(frozen=True)
class RowCurvature:
    """The curvature of rows, each a function of its own aᵀAa, and of the penalty.

    It takes one draw of each data row and only part of the noise, which costs a fraction of the
    exact product and is near enough for Newton's method; and the penalty's convex part.
    """

    rows: list[tuple[Tensor, Tensor]]
    """Rows (d + 1, b), and the weight of each (b,)."""
    penalty: PenaltyCurvature
    is_free: Tensor

    @property
    def total_weight(self) -> float:
        """The weight of all rows; 0 where every class probability has rounded to 0 or 1."""
        return float(sum(weights.sum() for _, weights in self.rows))

    def mean(self) -> Tensor:
        """Return the weighted mean (d,) of the rows."""
        total = sum((draws @ weights for draws, weights in self.rows), torch.zeros(()))
        return total[:-1] / total[-1]

    def product(self, direction: Tensor, progress: Progress) -> Tensor:
        """Return the operator times a symmetric `direction`."""
        squares = WeightedSquares(direction)
        for draws, weights in self.rows:
            progress.spend(2 * draws.numel() * draws.shape[0])
            squares.add(draws, quadratics(direction, draws).mul_(weights))
        product = squares.total()
        product[:-1, :-1] += self.penalty.product(direction[:-1, :-1])
        return product * self.is_free

    def restricted(self, is_free: Tensor) -> Self:
        """Return the operator on the entries that are free."""
        return replace(self, is_free=is_free)

    def preconditioner(
        self, constraints: Constraints, *, is_sparse: bool
    ) -> GaussianPreconditioner:
        """Return an approximate inverse for all that is estimated."""
        return GaussianPreconditioner.of(
            self.rows,
            self.penalty_diagonal(),
            constraints.estimated(),
            constraints.has_linear,
            self.mean() if constraints.has_linear and is_sparse else None,
        )

    def diagonal(self) -> Tensor:
        """Return its diagonal."""
        diagonal = WeightedSquares(torch.zeros_like(self.is_free, dtype=self.rows[0][0].dtype))
        for draws, weights in self.rows:
            diagonal.add(draws.square(), weights)
        return symmetrised(diagonal.total()) + self.penalty_diagonal()

    def penalty_diagonal(self) -> Tensor:
        """Return the penalty's part of the diagonal."""
        return torch.nn.functional.pad(self.penalty.diagonal(), (0, 1, 0, 1))

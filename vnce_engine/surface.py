"""The M-step's surface: the penalised objective as a function of A, the draws from q fixed.

Matrices stand in the space of symmetric (d + 1, d + 1) matrices with inner product tr(A B). With
a = (x, 1) of a completed row, its log ratio is -½ aᵀAa + offset, so that value and gradient are
two matrix products over the rows: A times the rows, and the weighted rows times themselves.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from vnce_engine.penalty import Penalty, PenaltyCurvature
from vnce_engine.progress import Progress
from vnce_engine.region import Region
from vnce_engine.symmetric_products import WeightedSquares, quadratics


class Sample(Protocol):
    """Data rows and noise rows to be told apart, as one model sees them."""

    @property
    def num_rows(self) -> int:
        """The number of data rows, n."""

    def terms(self, augmented: Tensor, progress: Progress) -> tuple[Tensor, Tensor]:
        """Return sum_rows mean_draws log sigma(±(log ratio - log nu)), and its gradient in A."""

    def curvature(
        self, augmented: Tensor, penalty: PenaltyCurvature, is_free: Tensor
    ) -> "Curvature":
        """Return about the negative Hessian of the terms over n, and the penalty's part."""


@dataclass(frozen=True)
class Surface:
    """J(A) = 1/n sum_rows mean_draws log sigma(±(log ratio - log nu)) - ½ tr(A C) - penalty.

    The plus sign is for data rows, the minus sign for noise rows. C, from the control variates,
    enters linearly, so that J without its penalty is concave whatever they are.
    """

    sample: Sample
    control: Tensor
    """C (d + 1, d + 1), already divided by n."""
    penalty: Penalty
    region: Region

    def at(self, augmented: Tensor, progress: Progress) -> "SurfacePoint":
        """Evaluate the surface, its gradient and its curvature at `augmented`."""
        value, gradient = self.sample.terms(augmented, progress)
        num_rows = self.sample.num_rows
        precision = augmented[:-1, :-1]
        value = value / num_rows - 0.5 * (augmented * self.control).sum()
        gradient = gradient / num_rows - 0.5 * self.control
        gradient = 0.5 * (gradient + gradient.mT)  # products differ in their last bits
        gradient[:-1, :-1] = self.penalty.ascent(precision, gradient[:-1, :-1])
        return SurfacePoint(
            surface=self,
            augmented=augmented,
            value=value - self.penalty.value(precision),
            gradient=gradient * self.region.estimated(),
        )


@dataclass(frozen=True)
class SurfacePoint:
    """A point of the surface."""

    surface: Surface
    augmented: Tensor
    value: Tensor
    gradient: Tensor
    """(d + 1, d + 1), exactly symmetric; zero in entries that are not estimated. Where the penalty
    has a kink, the subgradient of least size."""

    def is_free(self) -> Tensor:
        """Return bool (d + 1, d + 1): the entries that may move along the gradient."""
        free = self.surface.region.free(self.augmented, self.gradient)
        if self.surface.penalty.has_kink:
            free &= (self.augmented != 0) | (self.gradient != 0)
        return free

    def curvature(self) -> "Curvature":
        """Return about the negative Hessian here."""
        surface = self.surface
        penalty = surface.penalty.curvature(self.augmented[:-1, :-1])
        return surface.sample.curvature(self.augmented, penalty, self.is_free())


@dataclass(frozen=True)
class Curvature:
    """A positive semi-definite operator on symmetric matrices, near a surface's negative Hessian.

    It takes one draw of each data row and only part of the noise, which costs a fraction of the
    exact product and is near enough for Newton's method; and the penalty's convex part.
    """

    rows: list[tuple[Tensor, Tensor]]
    """Rows (d + 1, b), and the weight of each (b,)."""
    penalty: PenaltyCurvature
    is_free: Tensor
    """bool (d + 1, d + 1), symmetric: False where an entry of A stays as it is."""

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

    def diagonal(self) -> Tensor:
        """Return its diagonal."""
        diagonal = WeightedSquares(torch.zeros_like(self.is_free, dtype=self.rows[0][0].dtype))
        for draws, weights in self.rows:
            diagonal.add(draws.square(), weights)
        return both_ways(diagonal.total()) + self.penalty_diagonal()

    def penalty_diagonal(self) -> Tensor:
        """Return the penalty's part of the diagonal."""
        return torch.nn.functional.pad(self.penalty.diagonal(), (0, 1, 0, 1))


def both_ways(entries: Tensor) -> Tensor:
    """Return entries with those of their mirror images, which move along; exactly symmetric."""
    return entries + entries.mT - torch.diag(entries.diagonal())

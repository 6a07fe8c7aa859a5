"""The M-step's surface: the penalised objective as a function of A, the draws from q fixed.

Matrices stand in the space of symmetric (d + 1, d + 1) matrices with inner product tr(A B). With
a = (x, 1) of a completed row, its log ratio is -½ aᵀAa + offset, so that value and gradient are
two matrix products over the rows: A times the rows, and the weighted rows times themselves.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from vnce_engine.mean_field import log_ratios
from vnce_engine.penalty import Penalty, PenaltyCurvature
from vnce_engine.progress import Progress
from vnce_engine.region import Region
from vnce_engine.sample import ContrastiveSample


@dataclass(frozen=True)
class Surface:
    """J(A) = 1/n sum_rows mean_draws log sigma(±(log ratio - log nu)) - ½ tr(A C) - penalty.

    The plus sign is for data rows, the minus sign for noise rows. C, from the control variates,
    enters linearly, so that J without its penalty is concave whatever they are.
    """

    sample: ContrastiveSample
    control: Tensor
    """C (d + 1, d + 1), already divided by n."""
    penalty: Penalty
    region: Region

    def at(self, augmented: Tensor, progress: Progress) -> "SurfacePoint":
        """Evaluate the surface, its gradient and its curvature at `augmented`."""
        log_nu = math.log(self.sample.nu)
        value = augmented.new_zeros(())
        gradient = torch.zeros_like(augmented)
        for block in self.sample.blocks:
            progress.spend(2 * block.work)
            logits = log_ratios(block, augmented).flatten() - log_nu
            if block.is_noise:
                logits = -logits
            draws = block.flat_draws
            value += logsigmoid(logits).sum() / block.num_draws
            slopes = torch.sigmoid(-logits)  # the probability of the wrong class
            sign = 1 if block.is_noise else -1
            gradient.addmm_(draws * slopes, draws.mT, alpha=0.5 * sign / block.num_draws)
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
        log_nu = math.log(surface.sample.nu)
        rows = []
        for block, weight in surface.sample.curvature_blocks():
            draws = block.draws[:, 0]
            class_probability = torch.sigmoid(log_ratios(block, self.augmented)[0] - log_nu)
            weights = class_probability * (1 - class_probability)
            rows.append((draws, weights * (0.25 * weight / surface.sample.num_rows)))
        penalty = surface.penalty.curvature(self.augmented[:-1, :-1])
        return Curvature(rows, penalty, self.is_free())


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
        product = torch.zeros_like(direction)
        for draws, weights in self.rows:
            progress.spend(2 * draws.numel() * draws.shape[0])
            quadratic = (direction @ draws).mul_(draws).sum(dim=0)
            product.addmm_(draws * quadratic.mul_(weights), draws.mT)
        product[:-1, :-1] += self.penalty.product(direction[:-1, :-1])
        return product * self.is_free

    def diagonal(self) -> Tensor:
        """Return its diagonal."""
        diagonal = torch.zeros_like(self.is_free, dtype=self.rows[0][0].dtype)
        for draws, weights in self.rows:
            squares = draws.square()
            diagonal.addmm_(squares * weights, squares.mT)
        return both_ways(diagonal) + self.penalty_diagonal()

    def penalty_diagonal(self) -> Tensor:
        """Return the penalty's part of the diagonal."""
        return torch.nn.functional.pad(self.penalty.diagonal(), (0, 1, 0, 1))


def both_ways(entries: Tensor) -> Tensor:
    """Return entries with those of their mirror images, which move along; exactly symmetric."""
    return entries + entries.mT - torch.diag(entries.diagonal())

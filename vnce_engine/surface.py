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

from vnce_engine.blocks import Block
from vnce_engine.mean_field import log_ratios
from vnce_engine.penalty import Penalty, PenaltyCurvature
from vnce_engine.progress import Progress
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
    is_free: Tensor
    """bool (d + 1, d + 1), symmetric: False where an entry of A stays as it is."""

    def at(self, augmented: Tensor, progress: Progress) -> "SurfacePoint":
        """Evaluate the surface, its gradient and the weights of its Hessian at `augmented`."""
        log_nu = math.log(self.sample.nu)
        value = augmented.new_zeros(())
        gradient = torch.zeros_like(augmented)
        curvatures = []
        for block in self.sample.blocks:
            progress.spend(work(block))
            logits = log_ratios(block, augmented).flatten() - log_nu
            if block.is_noise:
                logits = -logits
            wrong = torch.sigmoid(-logits)  # the probability of the wrong class
            draws = block.flat_draws
            value += logsigmoid(logits).sum() / block.num_draws
            sign = 1 if block.is_noise else -1
            gradient.addmm_(draws * wrong, draws.mT, alpha=0.5 * sign / block.num_draws)
            curvatures.append(wrong.mul(1 - wrong).div_(4 * block.num_draws))
        num_rows = self.sample.num_rows
        precision = augmented[:-1, :-1]
        value = value / num_rows - 0.5 * (augmented * self.control).sum()
        gradient = gradient / num_rows - 0.5 * self.control
        gradient[:-1, :-1] -= self.penalty.gradient(precision)
        return SurfacePoint(
            surface=self,
            augmented=augmented,
            value=value - self.penalty.value(precision),
            gradient=gradient * self.is_free,
            curvatures=curvatures,
            penalty_curvature=self.penalty.curvature(precision),
        )


@dataclass(frozen=True)
class SurfacePoint:
    """A point of the surface, with all that Newton's method asks of it."""

    surface: Surface
    augmented: Tensor
    value: Tensor
    gradient: Tensor
    curvatures: list[Tensor]
    """For each block, (k * b,): a quarter of each draw's second derivative in its log ratio."""
    penalty_curvature: PenaltyCurvature

    def curvature_product(self, direction: Tensor, progress: Progress) -> Tensor:
        """Return the negative Hessian, positive semi-definite, times a symmetric `direction`."""
        product = torch.zeros_like(direction)
        for block, curvature in zip(self.surface.sample.blocks, self.curvatures, strict=True):
            progress.spend(work(block))
            draws = block.flat_draws
            weights = (direction @ draws).mul_(draws).sum(dim=0).mul_(curvature)
            product.addmm_(draws * weights, draws.mT)
        product /= self.surface.sample.num_rows
        product[:-1, :-1] += self.penalty_curvature.product(direction[:-1, :-1])
        return product * self.surface.is_free

    def curvature_diagonal(self) -> Tensor:
        """Return the diagonal of the negative Hessian, the preconditioner of its solver."""
        diagonal = torch.zeros_like(self.augmented)
        for block, curvature in zip(self.surface.sample.blocks, self.curvatures, strict=True):
            squares = block.flat_draws.square()
            diagonal.addmm_(squares * curvature, squares.mT)
        diagonal /= self.surface.sample.num_rows
        # An off-diagonal entry moves together with its mirror image and is felt twice.
        diagonal = 2 * diagonal - torch.diag(diagonal.diagonal())
        diagonal[:-1, :-1] += self.penalty_curvature.diagonal()
        return diagonal


def work(block: Block) -> int:
    """Return about how many multiplications one pass over the block takes."""
    return 2 * block.draws.numel() * block.draws.shape[0]

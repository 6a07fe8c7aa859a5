"""Conjugate gradients for Newton's equation, which is never written out as a matrix."""

from collections.abc import Callable

import torch
from torch import Tensor

from vnce_engine.progress import Progress
from vnce_engine.surface import Curvature

# Residual, relative to the right-hand side, at which the equation counts as solved: on the way, and
# where it decides that a fit has settled. Both are measured by the preconditioner, to which a
# direction that it takes for stiff hardly counts, as among columns nearly functions of each other.
FORCING = 0.1
STRICT_FORCING = 1e-6
_MAX_PRODUCTS = 50


def solve(
    gradient: Tensor,
    curvature: Curvature,
    preconditioner: Callable[[Tensor], Tensor],
    progress: Progress,
    forcing: float = FORCING,
) -> tuple[Tensor, bool]:
    """Return a symmetric direction that the curvature takes to the gradient but for `forcing`.

    And whether it does but for a tenth: conjugate gradients may run out of products, or of digits,
    where the preconditioner calls a length negative or not finite.
    """
    direction = torch.zeros_like(gradient)
    residual = gradient
    preconditioned = preconditioner(residual)
    search = preconditioned
    energy = (residual * preconditioned).sum()
    solved, enough = FORCING**2 * energy, forcing**2 * energy
    for _ in range(_MAX_PRODUCTS):
        if not energy > enough:
            break
        product = curvature.product(search, progress)
        step = energy / (search * product).sum()
        direction = direction + step * search
        residual = residual - step * product
        preconditioned = preconditioner(residual)
        previous, energy = energy, (residual * preconditioned).sum()
        search = preconditioned + (energy / previous) * search
    return 0.5 * (direction + direction.mT), bool((energy >= 0) & (energy <= solved))

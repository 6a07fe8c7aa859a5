"""Conjugate gradients for Newton's equation, which is never written out as a matrix."""

from collections.abc import Callable

import torch
from torch import Tensor

from vnce_engine.progress import Progress
from vnce_engine.surface import Curvature

# Residual, relative to the right-hand side, at which the equation counts as solved.
_FORCING = 0.1
_MAX_PRODUCTS = 50


def solve(
    gradient: Tensor,
    curvature: Curvature,
    preconditioner: Callable[[Tensor], Tensor],
    progress: Progress,
) -> tuple[Tensor, bool]:
    """Return a symmetric direction that the curvature takes to a tenth of the gradient.

    And whether it does: conjugate gradients may run out of products.
    """
    direction = torch.zeros_like(gradient)
    residual = gradient
    preconditioned = preconditioner(residual)
    search = preconditioned
    energy = (residual * preconditioned).sum()
    enough = _FORCING**2 * energy
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
    return 0.5 * (direction + direction.mT), not bool(energy > enough)

"""Conjugate gradients for Newton's equation, which is never written out as a matrix."""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from vnce_engine.optim.symmetric_products import symmetric_part
from vnce_engine.runtime.progress import Progress

# Residual, relative to the right-hand side, at which the equation counts as solved: on the way, and
# where it decides that a fit has settled. Both are measured by the preconditioner, to which a
# direction that it takes for stiff hardly counts, as among columns nearly functions of each other.
FORCING = 0.1
STRICT_FORCING = 1e-6
_MAX_PRODUCTS = 50
# Curvature along a direction, relative to the preconditioner's, that is zero but for rounding.
_FLAT = 1e-7


class Operator(Protocol):
    """A positive semi-definite operator on symmetric matrices."""

    def product(self, direction: Tensor, progress: Progress) -> Tensor:
        """Return the operator times a symmetric `direction`."""


def solve(
    gradient: Tensor,
    curvature: Operator,
    preconditioner: Callable[[Tensor], Tensor],
    progress: Progress,
    forcing: float = FORCING,
) -> tuple[Tensor, bool]:
    """Return a symmetric direction that the curvature takes to the gradient but for `forcing`.

    And whether it does but for a tenth: conjugate gradients may run out of products, or of digits,
    where the preconditioner calls a length negative or not finite; or they meet a direction without
    curvature, along which they end as far off as the preconditioner thinks.
    Source: Steihaug (1983), "The conjugate gradient method and trust regions in large scale
    optimization", SIAM J. Numer. Anal. 20, for ending so.
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
        curved = (search * product).sum()
        if curved <= _FLAT * energy:
            return symmetric_part(direction + search), False
        step = energy / curved
        direction = direction + step * search
        residual = residual - step * product
        preconditioned = preconditioner(residual)
        previous, energy = energy, (residual * preconditioned).sum()
        search = preconditioned + (energy / previous) * search
    return symmetric_part(direction), bool((energy >= 0) & (energy <= solved))

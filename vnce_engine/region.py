"""Where the parameters may lie: which entries of A are estimated, and how small K_ii may get."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Region:
    """Symmetric matrices A = [[K, -h], [-hᵀ, 2c]] with h free or fixed and every K_ii >= floor.

    The floor is above 0: q's variance is 1 / K_ii, and a column with tails heavier than any
    truncated normal's would send its K_ii to 0 and beyond.
    """

    has_linear: bool
    floor: Tensor
    """(d,), positive"""

    def estimated(self) -> Tensor:
        """Return bool (d + 1, d + 1): False for the entries of h where h is fixed."""
        size = len(self.floor) + 1
        estimated = torch.ones(size, size, dtype=torch.bool)
        if not self.has_linear:
            estimated[:-1, -1] = estimated[-1, :-1] = False
        return estimated

    def free(self, augmented: Tensor, gradient: Tensor) -> Tensor:
        """Return `estimated` without the K_ii that stand at the floor and would go below it."""
        held = (augmented.diagonal()[:-1] <= self.floor) & (gradient.diagonal()[:-1] < 0)
        return self.estimated() & ~torch.diag(torch.nn.functional.pad(held, (0, 1)))

    def project(self, augmented: Tensor) -> Tensor:
        """Return `augmented` with every K_ii at its floor or above."""
        projected = augmented.clone()
        projected.diagonal()[:-1].clamp_(min=self.floor)
        return projected

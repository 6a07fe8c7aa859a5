"""Where the parameters may lie: which entries of A are estimated, and how small K may get."""

from dataclasses import dataclass

import torch
from torch import Tensor

from vnce_engine.distributions.definiteness import is_positive_definite

# In units of the floor: what was put there may have moved by rounding since.
_AT_FLOOR = 1 + 1e-12


@dataclass(frozen=True)
class Constraints:
    """Symmetric matrices A = [[K, -h], [-hᵀ, 2c]] with h free or zero and every K_ii >= floor.

    The floor is above 0: a missing cell's variance is about 1 / K_ii, and a column with tails
    heavier than any truncated normal's would send its K_ii to 0 and beyond.
    """

    has_linear: bool
    floor: Tensor
    """(d,), positive"""
    graph: Tensor | None = None
    """bool (d, d), symmetric: the interactions that are not zero; None allows all."""
    is_definite: bool = False
    """Whether K must be positive definite."""
    has_constant: bool = True
    """Whether c is estimated; it is zero otherwise."""

    def estimated(self) -> Tensor:
        """Return bool (d + 1, d + 1): False for the entries of K and h that are zero."""
        size = len(self.floor) + 1
        estimated = torch.ones(size, size, dtype=torch.bool, device=self.floor.device)
        if self.graph is not None:
            estimated[:-1, :-1] = self.graph
        if not self.has_linear:
            estimated[:-1, -1] = estimated[-1, :-1] = False
        estimated.fill_diagonal_(True)
        estimated[-1, -1] = self.has_constant
        return estimated

    def contains(self, augmented: Tensor) -> bool:
        """Return whether K is as definite as it must be; the other bounds are `project`'s."""
        return not self.is_definite or is_positive_definite(augmented[:-1, :-1])

    def free(self, augmented: Tensor, gradient: Tensor) -> Tensor:
        """Return `estimated` without the K_ii that stand at the floor and would go below it."""
        held = (augmented.diagonal()[:-1] <= _AT_FLOOR * self.floor) & (
            gradient.diagonal()[:-1] < 0
        )
        return self.estimated() & ~torch.diag(torch.nn.functional.pad(held, (0, 1)))

    def project(self, augmented: Tensor) -> Tensor:
        """Return `augmented` with every K_ii at its floor or above, and zeros where they must be.

        Nothing brings an indefinite K back: a line search has to stop before.
        """
        projected = augmented * self.estimated()
        projected.diagonal()[:-1].clamp_(min=self.floor)
        return projected

"""An approximate inverse of a sum over columns of ½ w_j E (V_jᵀa)², for symmetric V.

Its curvature takes V to ½ (MVW + WVM), M the second moment of the rows and W the columns' weights:
a Lyapunov equation, which the eigenvectors of W^-½ M W^-½ solve. Columns nearly functions of each
other, whose M has hardly an inverse, are no harder for it than others.

Rows are measured from their mean where h is free: there h and K hardly depend on one another.
"""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from vnce_engine.symmetric_products import symmetric_part

# Of the largest eigenvalue: as far as a step may go where columns depend on each other linearly.
_RELATIVE_FLOOR = 1e-8

# Of the largest weight: their products have to stay within the numbers there are.
_LEAST_WEIGHT = 1e-100


@dataclass(frozen=True)
class LyapunovPreconditioner:
    """Solves the Lyapunov equation, the penalty as stiff in all pairs as it is on average."""

    centring: Tensor
    """(d + 1, d + 1): takes a = (x, 1) to (x - centre, 1)."""
    basis: Tensor
    """(d, d): W^-½ times the eigenvectors"""
    curvatures: Tensor
    """(d, d): ½ (λ_a + λ_b), and the penalty's"""
    weights: Tensor
    """(d,)"""
    is_free: Tensor
    """bool (d + 1, d + 1): False where an entry, rows measured from the centre, stays as it is."""

    @classmethod
    def of(
        cls,
        moment: Tensor,
        weights: Tensor,
        stiffness: Tensor,
        is_free: Tensor,
        *,
        has_linear: bool,
    ) -> "LyapunovPreconditioner":
        """Return the preconditioner for the mean `moment` of aaᵀ and the columns' weights.

        `stiffness` (d + 1, d + 1) is the penalty's own curvature, entry by entry.
        """
        weights = weights.clamp(min=_LEAST_WEIGHT * float(weights.max()))
        centring = torch.eye(len(moment), dtype=moment.dtype, device=moment.device)
        if has_linear:
            centring[:-1, -1] = -moment[:-1, -1] / moment[-1, -1]
        second = (centring @ moment @ centring.mT)[:-1, :-1]
        root = weights.rsqrt()
        eigenvalues, vectors = torch.linalg.eigh(second * torch.outer(root, root))
        eigenvalues = eigenvalues.clamp(min=_RELATIVE_FLOOR * eigenvalues[-1])
        # With the same weights as the columns have in the penalty all entries of this are equal.
        penalty = (stiffness[:-1, :-1] / torch.outer(weights, weights)).mean()
        return cls(
            centring,
            root.unsqueeze(1) * vectors,
            0.5 * (eigenvalues.unsqueeze(0) + eigenvalues.unsqueeze(1)) + penalty,
            weights,
            is_free,
        )

    def __call__(self, residual: Tensor) -> Tensor:
        """Return about the inverse curvature times a symmetric `residual` (d + 1, d + 1)."""
        free = self.is_free * self.centred(residual)
        solution = torch.zeros_like(free)
        turned = (self.basis.mT @ free[:-1, :-1] @ self.basis) / self.curvatures
        solution[:-1, :-1] = self.basis @ turned @ self.basis.mT
        # Entry h_j of column j alone, of which a symmetric matrix holds two halves.
        solution[:-1, -1] = solution[-1, :-1] = 2 * free[:-1, -1] / self.weights
        return self.about_centre(self.is_free * solution)

    def restricted(self, is_free: Tensor) -> Self:
        """Return the preconditioner of the equations of the entries that are free, symmetric."""
        return replace(self, is_free=self.is_free & is_free)

    def centred(self, gradient: Tensor) -> Tensor:
        """Return a gradient (d + 1, d + 1), kept symmetric, for rows measured from the centre."""
        return symmetric_part(self.centring @ gradient @ self.centring.mT)

    def about_centre(self, step: Tensor) -> Tensor:
        """Return a step in K (d + 1, d + 1) with the h that it takes along; c stays at zero."""
        moved = symmetric_part(self.centring.mT @ step @ self.centring)
        moved[-1, -1] = 0.0
        return moved

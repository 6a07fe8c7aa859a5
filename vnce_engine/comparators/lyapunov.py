"""An approximate inverse of a sum over columns of ½ w_j E (V_jᵀa)², for symmetric V.

Its curvature takes V to ½ (MVW + WVM), M the second moment of the rows and W the columns' weights:
a Lyapunov equation, which the eigenvectors of W^-½ M W^-½ solve. Columns nearly functions of each
other, whose M has hardly an inverse, are no harder for it than others.

Rows are measured from their mean where h is free: there h and K hardly depend on one another.

The penalty on the diagonal has a second derivative S (d, d) there, which among strongly dependent
columns is stiffer than theirs by many orders of magnitude, and leaves the diagonal's mean alone: it
is taken as it is. Let L⁻¹ = FFᵀ, E put a vector on the diagonal, and U = FᵀES^½. Then the inverse
of L + ESEᵀ is F (I + UUᵀ)⁻¹ Fᵀ, and (I + UUᵀ)^-½ is I - UXUᵀ, X having UᵀU's eigenvectors and
1 / (s + s²) for each eigenvalue s² - 1. That root taken twice stays positive where the differences
of Woodbury's formula lose all digits.
"""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from vnce_engine.optim.symmetric_products import symmetric_part
from vnce_engine.penalties.penalty import PenaltyCurvature

# Of the largest eigenvalue: as far as a step may go where columns depend on each other linearly.
_RELATIVE_FLOOR = 1e-8

# Of the largest weight: their products have to stay within the numbers there are.
_LEAST_WEIGHT = 1e-100


@dataclass(frozen=True)
class LyapunovPreconditioner:
    """Solves the Lyapunov equation with the penalty, as stiff in all pairs as it is on average."""

    centring: Tensor
    """(d + 1, d + 1): takes a = (x, 1) to (x - centre, 1)."""
    basis: Tensor
    """(d, d): W^-½ times the eigenvectors"""
    curvatures: Tensor
    """(d, d): ½ (λ_a + λ_b), and the pairs' penalty"""
    held: Tensor
    """(d, r): S^½X^½, of the r directions of the diagonal that the penalty holds"""
    weights: Tensor
    """(d,)"""
    is_free: Tensor
    """bool (d + 1, d + 1): False where an entry, rows measured from the centre, stays as it is."""

    @classmethod
    def of(
        cls,
        moment: Tensor,
        weights: Tensor,
        penalty: PenaltyCurvature,
        is_free: Tensor,
        *,
        has_linear: bool,
    ) -> "LyapunovPreconditioner":
        """Return the preconditioner for the mean `moment` of aaᵀ and the columns' weights."""
        weights = weights.clamp(min=_LEAST_WEIGHT * float(weights.max()))
        centring = torch.eye(len(moment), dtype=moment.dtype, device=moment.device)
        if has_linear:
            centring[:-1, -1] = -moment[:-1, -1] / moment[-1, -1]
        second = (centring @ moment @ centring.mT)[:-1, :-1]
        root = weights.rsqrt()
        eigenvalues, vectors = torch.linalg.eigh(second * torch.outer(root, root))
        eigenvalues = eigenvalues.clamp(min=_RELATIVE_FLOOR * eigenvalues[-1])
        basis = root.unsqueeze(1) * vectors
        curvatures = 0.5 * (eigenvalues.unsqueeze(0) + eigenvalues.unsqueeze(1))
        curvatures = curvatures + _stiffness_of_pairs(penalty, weights)
        held = _held(_root_of_stiffness(penalty), basis, curvatures)
        return cls(centring, basis, curvatures, held, weights, is_free)

    def __call__(self, residual: Tensor) -> Tensor:
        """Return about the inverse curvature times a symmetric `residual` (d + 1, d + 1)."""
        free = self.is_free * self.centred(residual)
        solution = torch.zeros_like(free)
        root = self.curvatures.rsqrt()
        turned = root * (self.basis.mT @ free[:-1, :-1] @ self.basis)
        turned = root * self._shrunk(self._shrunk(turned))
        solution[:-1, :-1] = self.basis @ turned @ self.basis.mT
        # Entry h_j of column j alone, of which a symmetric matrix holds two halves.
        solution[:-1, -1] = solution[-1, :-1] = 2 * free[:-1, -1] / self.weights
        return self.about_centre(self.is_free * solution)

    def _shrunk(self, turned: Tensor) -> Tensor:
        """Return (I + UUᵀ)^-½ times a symmetric matrix (d, d) in the eigenvectors' coordinates."""
        if not self.held.shape[1]:
            return turned
        root = self.curvatures.rsqrt()
        diagonal = ((self.basis @ (root * turned)) * self.basis).sum(dim=1)
        held = self.held @ (self.held.mT @ diagonal)
        return turned - root * (self.basis.mT @ (held.unsqueeze(1) * self.basis))

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


def _stiffness_of_pairs(penalty: PenaltyCurvature, weights: Tensor) -> Tensor:
    """Return the mean stiffness of the interactions, in units of the columns' weights."""
    # With the same weights as the columns have in the penalty all entries of this are equal.
    relative = penalty.diagonal() / torch.outer(weights, weights)
    num_pairs = max(len(weights) * (len(weights) - 1), 1)
    return relative.fill_diagonal_(0.0).sum() / num_pairs


def _root_of_stiffness(penalty: PenaltyCurvature) -> Tensor:
    """Return S^½ (d, r): S is the penalty's second derivative in the diagonal, r its rank."""
    units = torch.eye(len(penalty.inverse_k0)).to(penalty.inverse_k0)
    stiffness = torch.stack([penalty.product(torch.diag(unit)).diagonal() for unit in units])
    eigenvalues, vectors = torch.linalg.eigh(symmetric_part(stiffness))
    is_stiff = eigenvalues > _RELATIVE_FLOOR * eigenvalues[-1]
    root: Tensor = vectors[:, is_stiff] * eigenvalues[is_stiff].sqrt()
    return root


def _held(root: Tensor, basis: Tensor, curvatures: Tensor) -> Tensor:
    """Return S^½X^½ (d, r) for S^½ (d, r)."""
    if not root.shape[1]:
        return root
    inner = root.mT @ _inverse_on_diagonal(basis, curvatures) @ root
    eigenvalues, vectors = torch.linalg.eigh(symmetric_part(inner))
    lengths = (1 + eigenvalues.clamp(min=0)).sqrt()
    held: Tensor = root @ vectors * (lengths * (1 + lengths)).rsqrt()
    return held


def _inverse_on_diagonal(basis: Tensor, curvatures: Tensor) -> Tensor:
    """Return EᵀL⁻¹E (d, d), sum_ab B_ia B_ib B_ja B_jb / C_ab."""
    total = torch.zeros_like(basis)
    for a in range(len(basis)):
        products = basis[:, a : a + 1] * basis[:, a:]
        shares = 2 / curvatures[a, a:]
        shares[0] /= 2  # pairs of two count twice
        total.addmm_(products * shares, products.mT)
    return total

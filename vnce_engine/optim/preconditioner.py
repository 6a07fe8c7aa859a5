"""An approximate inverse of the M-step's Hessian, exact where completed rows are normal.

The Hessian is the second moment of the statistics (xxᵀ, x, 1) under the weights of the rows. For
normal x its products follow from first and second moments alone: with M the second moment of
a = (x, 1) and m its last column, V goes to 2 MVM + tr(MV) M - 2 (mᵀVm) mmᵀ (the fourth moments of
a normal vector), which the inverse of M inverts in closed form. Columns of a table with
means far from zero make a diagonal preconditioner useless; this one does not feel them.

Where many entries stay as they are, rows may be measured from their mean: there K_ij, h_i and c
hardly depend on one another, so that leaving some out leaves an inverse of the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vnce_engine.optim.symmetric_products import WeightedSquares, symmetric_part, symmetrised

# Keeps the factor of M finite for columns that depend on each other linearly.
_RELATIVE_RIDGE = 1e-10


@dataclass(frozen=True)
class GaussianPreconditioner:
    """Divides by the curvature of normal rows, then damps what the penalty stiffens.

    The penalty enters through the square root of the share g / (g + p) that the rows have in each
    diagonal entry of the curvature, from both sides: exact if the rows' part were diagonal.
    """

    centring: Tensor | None
    """(d + 1, d + 1): takes a = (x, 1) to (x - centre, 1); None where the centre is 0."""
    inverse: Tensor
    """P, the inverse of M, or of its part without the constant where h is 0."""
    mean: Tensor
    """m, the last column of M, or its part without the constant."""
    pulled_mean: Tensor
    """p = Pm"""
    total_weight: Tensor
    damping: Tensor
    """(d + 1, d + 1), for rows measured from the centre; 0 where an entry stays as it is."""
    has_linear: bool

    @classmethod
    def of(
        cls,
        weighted_rows: Sequence[tuple[Tensor, Tensor]],
        stiffness: Tensor,
        is_free: Tensor,
        has_linear: bool,
        centre: Tensor | None = None,
    ) -> "GaussianPreconditioner":
        """Return the preconditioner for rows (d + 1, b) of weights (b,), and a penalty.

        `stiffness` (d + 1, d + 1) is the penalty's own curvature, entry by entry; `centre` (d,) is
        0 unless h is free.
        """
        zeros = torch.zeros_like(stiffness)
        seconds, fourths = WeightedSquares(zeros), WeightedSquares(zeros)
        centring = None
        if centre is not None:
            centring = torch.eye(len(zeros), dtype=zeros.dtype, device=zeros.device)
            centring[:-1, -1] = -centre
        for draws, weights in weighted_rows:
            rows = draws if centring is None else centring @ draws
            seconds.add(rows, weights)
            fourths.add(rows.square(), weights)
        moment = seconds.total()
        total_weight = moment[-1, -1].clone()
        moment = moment / total_weight
        mean = moment[:, -1]
        if not has_linear:
            moment, mean = moment[:-1, :-1], mean[:-1]
        ridge = torch.diag(moment.diagonal() * _RELATIVE_RIDGE)
        factor = torch.linalg.cholesky(moment + ridge)
        inverse = torch.cholesky_inverse(factor)
        diagonal = symmetrised(fourths.total())
        share = diagonal / (diagonal + stiffness)
        damping = share.sqrt() * is_free
        return cls(centring, inverse, mean, inverse @ mean, total_weight, damping, has_linear)

    def __call__(self, residual: Tensor) -> Tensor:
        """Return about the inverse curvature times a symmetric `residual` (d + 1, d + 1)."""
        damped = self.damping * self.centred(residual)
        solution = self._with_linear(damped) if self.has_linear else self._without_linear(damped)
        solution = self.damping * solution / self.total_weight
        return self.about_centre(solution)

    def restricted(self, is_free: Tensor) -> "GaussianPreconditioner":
        """Return the preconditioner of the equations of the entries that are free, symmetric."""
        return replace(self, damping=self.damping * is_free)

    def centred(self, gradient: Tensor) -> Tensor:
        """Return a gradient (d + 1, d + 1), kept symmetric, for rows measured from the centre."""
        if self.centring is not None:
            gradient = self.centring @ gradient @ self.centring.mT
        return symmetric_part(gradient)

    def about_centre(self, step: Tensor) -> Tensor:
        """Return a step in K (d + 1, d + 1) with the h and c that it takes along.

        For rows measured from the centre, K alone moves. Exactly symmetric.
        """
        if self.centring is not None:
            step = self.centring.mT @ step @ self.centring
        return symmetric_part(step)

    def _with_linear(self, residual: Tensor) -> Tensor:
        """Solve 2 MVM + tr(MV) M - 2 (mᵀVm) mmᵀ = B; here mᵀp is 1, and tr(MV) is pᵀBp."""
        trace = self.pulled_mean @ residual @ self.pulled_mean
        quadratic = 0.5 * ((2 + len(self.mean)) * trace - (self.inverse * residual).sum())
        return self._solve(residual, trace, quadratic)

    def _without_linear(self, residual: Tensor) -> Tensor:
        """Solve the same for V without its h: r in place of tr(MV), and r = tr(MV) + v."""
        pairs, corner = residual[:-1, :-1], residual[-1, -1]
        length = self.mean @ self.pulled_mean
        product = self.pulled_mean @ pairs @ self.pulled_mean
        quadratic = 0.5 * (product - corner * length) / (1 - length.square())
        trace = 0.5 * ((self.inverse * pairs).sum() - corner * len(self.mean)) + quadratic * length
        solution = torch.zeros_like(residual)
        solution[:-1, :-1] = self._solve(pairs, corner, quadratic)
        solution[-1, -1] = corner - trace
        return solution

    def _solve(self, residual: Tensor, trace: Tensor, quadratic: Tensor) -> Tensor:
        """Return V = ½ (PBP - r P) + (mᵀVm) ppᵀ."""
        pulled = self.inverse @ residual @ self.inverse
        outer = torch.outer(self.pulled_mean, self.pulled_mean)
        return 0.5 * (pulled - trace * self.inverse) + quadratic * outer

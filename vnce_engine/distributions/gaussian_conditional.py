"""The missing cells of a Gaussian's rows given the observed ones, pattern by pattern.

With log phi(x) = -½ xᵀKx + hᵀx - c on R^d the missing cells m of a row are normal, given its
observed cells o, with precision K_mm and mean K_mm⁻¹ (h_m - K_mo x_o). At that mean the exponent is
largest; integrated over the missing cells, log phi is what it is there and the log of their
Gaussian integral. Rows that share a pattern share one Cholesky factor.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from vnce_engine.distributions.quadratic import QuadraticModel

# Rows whose patterns' factors are to be in memory at once.
BLOCK_ROWS = 4096


@dataclass(frozen=True)
class GaussianConditionals:
    """The normal distributions of the missing cells for each of p missingness patterns."""

    precision: Tensor
    """K (d, d)"""
    is_missing: Tensor
    """bool (p, d): the patterns"""
    factor: Tensor
    """(p, d, d): Cholesky factor of K_mm, that of the identity where cells are observed, so that
    all are of one size. NaN where K_mm is not positive definite: a line search turns back there."""

    @classmethod
    def of(cls, precision: Tensor, is_missing: Tensor) -> "GaussianConditionals":
        """Return those of K (d, d) for patterns, bool (p, d)."""
        identity = torch.eye(len(precision), dtype=precision.dtype, device=precision.device)
        both = is_missing.unsqueeze(2) & is_missing.unsqueeze(1)
        factor, info = torch.linalg.cholesky_ex(torch.where(both, precision, identity))
        return cls(precision, is_missing, torch.where((info > 0).view(-1, 1, 1), torch.nan, factor))

    def covariance(self) -> Tensor:
        """Return K_mm⁻¹ (p, d, d), 0 where a cell is observed."""
        both = self.is_missing.unsqueeze(2) & self.is_missing.unsqueeze(1)
        return torch.cholesky_inverse(self.factor) * both

    def log_integral(self) -> Tensor:
        """Return log ∫ exp(-½ zᵀ K_mm z) dz (p,)."""
        num_missing = self.is_missing.to(self.factor.dtype).sum(dim=1)
        half_log_determinant = self.factor.diagonal(dim1=1, dim2=2).log().sum(dim=1)
        return 0.5 * num_missing * math.log(2 * math.pi) - half_log_determinant

    def completed(self, observed: Tensor, linear: Tensor | float, pattern: Tensor) -> Tensor:
        """Return rows (n, d), 0 where missing, with missing cells at their conditional mean.

        `pattern`, int64 (n,), is that of each row; `linear` is h (d,), 0 for rows less their mean.
        """
        slope = torch.where(self.is_missing[pattern], linear - observed @ self.precision, 0.0)
        cells = torch.cholesky_solve(slope.unsqueeze(2), self.factor[pattern]).squeeze(2)
        return observed + cells


@dataclass(frozen=True)
class CompletedRows:
    """Rows of any patterns with their missing cells at the conditional mean."""

    conditionals: GaussianConditionals
    pattern: Tensor
    """int64 (n,): which of the patterns each row has"""
    mean: Tensor
    """(n, d)"""

    @classmethod
    def of(cls, precision: Tensor, linear: Tensor | float, u: Tensor) -> "CompletedRows":
        """Complete rows u (n, d), NaN where missing."""
        patterns, pattern = torch.unique(torch.isnan(u), dim=0, return_inverse=True)
        conditionals = GaussianConditionals.of(precision, patterns)
        completed = conditionals.completed(torch.nan_to_num(u, nan=0.0), linear, pattern)
        return cls(conditionals, pattern, completed)

    @property
    def is_missing(self) -> Tensor:
        """Bool (n, d)."""
        return self.conditionals.is_missing[self.pattern]

    def log_integral(self) -> Tensor:
        """Return log ∫ exp(-½ zᵀ K_mm z) dz (n,) over each row's missing cells."""
        return self.conditionals.log_integral()[self.pattern]


def log_marginal(model: QuadraticModel, u: Tensor) -> Tensor:
    """Return log phi (n,) of the observed cells of u (n, d), NaN where missing, on R^d."""
    rows = CompletedRows.of(model.precision, model.linear, u)
    return model.log_phi(rows.mean) + rows.log_integral()

"""The Gaussian on all of R^d, its missing cells latent, and its exact conditional as a family.

    log phi(x) = -½ xᵀ K x + hᵀ x - c,   x in R^d,   K positive definite

theta holds the lower triangle of K row by row, then h (d,), then c. Given a row's observed cells o
its missing ones m are normal with precision K_mm and mean K_mm⁻¹ (h_m - K_mo x_o): a family with
theta for its alpha is the posterior itself, and J_VNCE is then J_NCE (Theorem 1 of the paper).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

_LOG_TAU = math.log(2 * math.pi)


class GaussianParameters(NamedTuple):
    """theta, unpacked."""

    precision: Tensor
    """K (d, d), symmetric"""
    linear: Tensor
    """h (d,)"""
    log_partition: Tensor
    """c, a scalar"""

    def packed(self) -> Tensor:
        """Return theta (p,)."""
        rows, columns = lower_triangle(len(self.linear), self.linear.device)
        triangle = self.precision[rows, columns]
        return torch.cat([triangle, self.linear, self.log_partition.reshape(1)])

    @classmethod
    def unpack(cls, theta: Tensor, d: int) -> "GaussianParameters":
        """Read K, h and c from theta (p,) of d columns."""
        rows, columns = lower_triangle(d, theta.device)
        triangle, linear, log_partition = theta.split([len(rows), d, 1])
        index = torch.zeros(d, d, dtype=torch.int64, device=theta.device)
        index[rows, columns] = index[columns, rows] = torch.arange(len(rows), device=theta.device)
        return cls(triangle[index], linear, log_partition.squeeze(0))

    def mean(self) -> Tensor:
        """Return the mean K⁻¹ h (d,)."""
        factor = torch.linalg.cholesky(self.precision)
        return torch.cholesky_solve(self.linear.unsqueeze(1), factor).squeeze(1)

    @classmethod
    def normalised(cls, mean: Tensor, precision: Tensor) -> "GaussianParameters":
        """Return the parameters of N(mean, precision⁻¹), whose c is the log of its integral."""
        linear = precision @ mean
        log_partition = 0.5 * (
            linear @ mean + len(mean) * _LOG_TAU - torch.linalg.slogdet(precision).logabsdet
        )
        return cls(precision, linear, log_partition)


class GroupedRows(NamedTuple):
    """Rows with holes; those with the same holes share one Cholesky factor."""

    u: Tensor
    """(n, d), NaN where missing"""
    patterns: Tensor
    """bool (number of patterns, d): True where missing"""
    pattern: Tensor
    """int64 (n,): the pattern of each row"""

    @classmethod
    def of(cls, u: Tensor) -> "GroupedRows":
        """Find the distinct patterns of rows u (n, d)."""
        patterns, pattern = torch.unique(torch.isnan(u), dim=0, return_inverse=True)
        return cls(u, patterns, pattern)

    def observed_cells(self) -> Tensor:
        """Return u with zeros where cells are missing."""
        return torch.nan_to_num(self.u, nan=0.0)

    def factors(self, precision: Tensor) -> Tensor:
        """Return the factors of `pattern_factors` (number of patterns, d, d)."""
        return pattern_factors(precision, self.patterns)[0]


def pattern_factors(precision: Tensor, patterns: Tensor) -> tuple[Tensor, Tensor]:
    """Return Cholesky factors (p, d, d) of K_mm for each of `patterns`, bool (p, d), True missing.

    That of the identity where cells are observed, and NaN where K_mm is not positive definite, so
    that a line search turns back from there; and bool (p, d, d), whether both cells are missing.
    """
    both_missing = patterns.unsqueeze(2) & patterns.unsqueeze(1)
    identity = torch.eye(len(precision), dtype=precision.dtype, device=precision.device)
    factor, info = torch.linalg.cholesky_ex(torch.where(both_missing, precision, identity))
    return torch.where((info > 0).view(-1, 1, 1), torch.nan, factor), both_missing


class MissingCells(NamedTuple):
    """The normal distribution of each row's missing cells given its observed ones."""

    pattern: Tensor
    """int64 (n,): which distinct pattern a row has"""
    factor: Tensor
    """(number of patterns, d, d): Cholesky factor of K_mm, of the identity elsewhere"""
    mean: Tensor
    """(n, d): completed rows, the missing cells at their conditional mean"""
    is_missing: Tensor
    """bool (n, d)"""

    def log_normaliser(self) -> Tensor:
        """Return log ∫ exp(-½ zᵀ K_mm z) dz (n,)."""
        num_missing = self.is_missing.to(self.mean.dtype).sum(dim=1)
        return 0.5 * num_missing * _LOG_TAU - half_log_determinants(self.factor)[self.pattern]


def half_log_determinants(factor: Tensor) -> Tensor:
    """Return ½ log det (p,) of the matrices with Cholesky factors (p, d, d)."""
    return factor.diagonal(dim1=1, dim2=2).log().sum(dim=1)


def conditional(parameters: GaussianParameters, u: Tensor) -> MissingCells:
    """Return the distribution of the missing cells of rows u (n, d), NaN where missing."""
    rows = GroupedRows.of(u)
    factor = rows.factors(parameters.precision)
    observed, is_missing = rows.observed_cells(), torch.isnan(u)
    pull = torch.where(is_missing, parameters.linear - observed @ parameters.precision, 0.0)
    cells = torch.cholesky_solve(pull.unsqueeze(2), factor[rows.pattern]).squeeze(2)
    return MissingCells(rows.pattern, factor, observed + cells, is_missing)


@dataclass(frozen=True)
class Gaussian:
    """The model, an `UnnormalisedModel`; z is the completed row."""

    num_columns: int

    def log_phi(self, theta: Tensor, u: Tensor, z: Tensor) -> Tensor:
        """Return log phi (..., n) of completed rows z (..., n, d)."""
        precision, linear, log_partition = GaussianParameters.unpack(theta, self.num_columns)
        return z @ linear - 0.5 * ((z @ precision) * z).sum(dim=-1) - log_partition

    def log_marginal(self, theta: Tensor, u: Tensor) -> Tensor:
        """Return log phi (n,) of the observed cells of u (n, d), the missing ones integrated out.

        At the conditional mean the exponent is largest; what is left is its Gaussian integral.
        """
        parameters = GaussianParameters.unpack(theta, self.num_columns)
        cells = conditional(parameters, u)
        at_mean = self.log_phi(theta, u, cells.mean)
        return at_mean + cells.log_normaliser()


@dataclass(frozen=True)
class GaussianConditional:
    """q(missing | observed) of a Gaussian, a `VariationalFamily`; alpha is a theta of `Gaussian`.

    Its c is not used. With alpha = theta it is the model's posterior.
    """

    num_columns: int

    def rsample(self, alpha: Tensor, u: Tensor, uniforms: Tensor) -> Tensor:
        """Map uniforms (k, n, d) in (0, 1) to completed rows z (k, n, d)."""
        cells = conditional(GaussianParameters.unpack(alpha, self.num_columns), u)
        standard: Tensor = torch.special.ndtri(uniforms)
        standard = torch.where(cells.is_missing, standard, 0.0)
        upper = cells.factor[cells.pattern].mT
        spread: Tensor = torch.linalg.solve_triangular(upper, standard.permute(1, 2, 0), upper=True)
        return cells.mean + spread.permute(2, 0, 1)

    def log_prob(self, alpha: Tensor, z: Tensor, u: Tensor) -> Tensor:
        """Return log q (k, n) of the missing cells of completed rows z (k, n, d)."""
        parameters = GaussianParameters.unpack(alpha, self.num_columns)
        cells = conditional(parameters, u)
        deviation = z - cells.mean
        squares = ((deviation @ parameters.precision) * deviation).sum(dim=-1)
        return -0.5 * squares - cells.log_normaliser()


def lower_triangle(d: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return row and column numbers of the lower triangle with its diagonal, row by row."""
    rows, columns = torch.tril_indices(d, d, device=device)
    return rows, columns

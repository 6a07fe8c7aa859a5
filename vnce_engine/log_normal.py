"""The paper's variational family: one joint log-normal, conditioned on whatever was observed."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.linalg import solve_triangular
from torch.special import ndtri

from vnce_engine.observations import Observations


@dataclass(frozen=True)
class LogNormal:
    """A log-normal over all d coordinates: log x is normal with mean m and precision R R'.

    `log_mean` is m (d,); `factor` is R (d, d), lower triangular with a positive diagonal. The
    factor is that of the precision, not of the covariance, because the conditional distribution
    of some coordinates given the others has the corresponding block of the precision.
    Source: Rhodes and Gutmann (2019), Section 5.1.
    """

    log_mean: Tensor
    factor: Tensor

    @classmethod
    def fit_independent(cls, observations: Observations) -> "LogNormal":
        """Return independent log-normals with the observed cells' means and variances of log x.

        Raises `ValueError` if an observed cell is zero, naming the column and the number of such
        cells, or if the observed cells of a column do not differ.
        """
        values, observed = observations.values, observations.observed
        _refuse_zeros(values, observed)
        log_values = torch.where(observed, values, 1.0).log()
        counts = observed.sum(dim=0).clamp(min=1)
        log_mean = log_values.sum(dim=0) / counts
        deviations = torch.where(observed, log_values - log_mean, 0.0)
        variance = deviations.square().sum(dim=0) / counts
        if (variance <= 0).any():
            column = int((variance <= 0).nonzero()[0])
            raise ValueError(f"column {column} (counted from 0) has no two different values")
        return cls(log_mean, torch.diag(variance.rsqrt()))

    @classmethod
    def from_vector(cls, vector: Tensor, num_columns: int) -> "LogNormal":
        """Read the family from unconstrained parameters; the inverse of `to_vector`.

        They are m, then the logs of R's diagonal, then R's entries below it row by row.
        """
        log_mean, log_diagonal, below = vector.split(
            [num_columns, num_columns, num_columns * (num_columns - 1) // 2]
        )
        factor = torch.diag(log_diagonal.exp())
        rows, columns = torch.tril_indices(num_columns, num_columns, offset=-1)
        return cls(log_mean, factor.index_put((rows, columns), below))

    def to_vector(self) -> Tensor:
        """Return the unconstrained parameters, d (d + 3) / 2 numbers."""
        num_columns = self.factor.shape[0]
        rows, columns = torch.tril_indices(num_columns, num_columns, offset=-1)
        return torch.cat([self.log_mean, self.factor.diagonal().log(), self.factor[rows, columns]])

    def given(self, values: Tensor, observed: Tensor) -> "ConditionalLogNormal":
        """Return the distribution of each row's missing coordinates given its observed ones.

        Shapes: `values` (..., n, d), of which cells that are not observed are ignored; `observed`
        bool (n, d). Rows that share a pattern share one Cholesky factor.
        """
        patterns, pattern = torch.unique(observed, dim=0, return_inverse=True)
        precision = self.factor @ self.factor.mT
        # Each pattern's block of the precision, framed by the identity so that all have one size.
        missing = (~patterns).to(values.dtype)
        blocks = precision * missing.unsqueeze(1) * missing.unsqueeze(2)
        factors = torch.linalg.cholesky(blocks + torch.diag_embed(1 - missing))
        log_values = torch.where(observed, values, 1.0).log()
        deviations = torch.where(observed, log_values - self.log_mean, 0.0)
        pull = torch.where(observed, 0.0, deviations @ precision)
        factors = factors[pattern]
        return ConditionalLogNormal(
            values=values,
            observed=observed,
            log_mean=self.log_mean,
            factors=factors,
            whitened_pull=_solve(factors, pull, upper=False),
        )


@dataclass(frozen=True)
class ConditionalLogNormal:
    """The closed-form conditional of a `LogNormal`, row by row.

    With F F' the precision of a row's missing coordinates y = log x, and p the pull of its
    observed ones, F'(y - m) + F⁻¹ p is a standard normal vector. Completed rows are d wide, so
    that the model evaluates them as they are; their observed cells are the data's own.
    """

    values: Tensor
    """(..., n, d)"""
    observed: Tensor
    """bool (n, d)"""
    log_mean: Tensor
    """m (d,)"""
    factors: Tensor
    """F (n, d, d), the identity in the rows and columns of observed coordinates"""
    whitened_pull: Tensor
    """F⁻¹ p (..., n, d), 0 where observed"""

    def rsample(self, uniforms: Tensor) -> Tensor:
        """Map uniforms (k, ..., n, d) to completed rows (k, ..., n, d), with gradients.

        Only the uniforms of missing cells are used; they lie strictly between 0 and 1.
        """
        normals = torch.where(self.observed, 0.0, ndtri(uniforms))
        deviations = _solve(self.factors.mT, normals - self.whitened_pull, upper=True)
        draws = torch.where(self.observed, 0.0, self.log_mean + deviations).exp()
        return torch.where(self.observed, self.values, draws)

    def log_prob(self, completed: Tensor) -> Tensor:
        """Return the log density (k, ..., n) of the missing coordinates of completed rows.

        It is 0 for a row without missing cells.
        """
        log_values = torch.where(self.observed, 1.0, completed).log()
        deviations = torch.where(self.observed, 0.0, log_values - self.log_mean)
        normals = _multiply(self.factors.mT, deviations) + self.whitened_pull
        num_missing = (~self.observed).sum(dim=-1, dtype=log_values.dtype)
        # The identity's part of F adds nothing to its log determinant.
        log_determinant = self.factors.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
        log_normal = log_determinant - 0.5 * math.log(2 * math.pi) * num_missing
        return log_normal - 0.5 * normals.square().sum(dim=-1) - log_values.sum(dim=-1)


def _solve(factors: Tensor, vectors: Tensor, *, upper: bool) -> Tensor:
    """Solve each row's triangular system (n, d, d) for all of its vectors (..., n, d)."""
    columns = _as_columns(vectors)
    return _as_vectors(solve_triangular(factors, columns, upper=upper), vectors.shape)


def _multiply(factors: Tensor, vectors: Tensor) -> Tensor:
    """Multiply each row's matrix (n, d, d) with all of its vectors (..., n, d)."""
    return _as_vectors(factors @ _as_columns(vectors), vectors.shape)


def _as_columns(vectors: Tensor) -> Tensor:
    """Bring vectors (..., n, d) to (n, d, ...), so that a row's matrix is used once, not copied."""
    return vectors.reshape(-1, *vectors.shape[-2:]).permute(1, 2, 0)


def _as_vectors(columns: Tensor, shape: torch.Size) -> Tensor:
    return columns.permute(2, 0, 1).reshape(shape)


def _refuse_zeros(values: Tensor, observed: Tensor) -> None:
    """Raise `ValueError` if an observed cell has no logarithm."""
    counts = (observed & (values <= 0)).sum(dim=0)
    if counts.any():
        column = int(counts.nonzero()[0])
        raise ValueError(
            "the log-normal family needs observed values above 0, but column "
            f"{column} (counted from 0) has {int(counts[column])} that are not; "
            "use the default family, which allows zeros"
        )

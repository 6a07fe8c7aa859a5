"""The paper's variational family: one joint log-normal, conditioned on whatever was observed."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.linalg import solve_triangular

from vnce_engine.data.observations import Observations
from vnce_engine.data.patterns import MissingnessPatterns


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
        log_mean, variance = Observations(log_values, observed).moments()
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

    def given(self, log_values: Tensor, missing: MissingnessPatterns) -> "ConditionalLogNormal":
        """Return the distribution of each row's missing coordinates given its observed ones.

        `log_values` (t, d, n) has the logarithms of t tables that share the mask of `missing`, rows
        as columns; of missing cells they are ignored. Rows that share a pattern, whatever their
        table, share one Cholesky factor.
        """
        precision = self.factor @ self.factor.mT
        deviations = (log_values - self.log_mean.unsqueeze(1)).where(missing.observed.mT, 0.0)
        pull = (precision @ deviations)[:, missing.column, missing.row].mT
        factors, whitened_pull = [], []
        for group, pull_of_group in zip(missing.groups, missing.split(pull), strict=True):
            blocks = precision[group.patterns.unsqueeze(2), group.patterns.unsqueeze(1)]
            factors.append(torch.linalg.cholesky(blocks)[group.pattern])
            whitened_pull.append(solve_triangular(factors[-1], pull_of_group, upper=False))
        return ConditionalLogNormal(missing, self.log_mean, tuple(factors), tuple(whitened_pull))


class Draws(NamedTuple):
    """Draws of missing cells, and how dense the family is there."""

    logarithms: Tensor
    """(p, t, k): of the p missing cells of each of t tables, in the order of their patterns"""
    log_prob: Tensor
    """(t, k, n): log density of the cells of each row together; 0 where none is missing"""


@dataclass(frozen=True)
class ConditionalLogNormal:
    """The closed-form conditional of a `LogNormal`, row by row.

    With F F' the precision of a row's missing coordinates y = log x, and p the pull of its
    observed ones, F'(y - m) + F⁻¹ p is a standard normal vector.
    """

    missing: MissingnessPatterns
    log_mean: Tensor
    """m (d,)"""
    factors: tuple[Tensor, ...]
    """F (r, m, m) for each group of r rows with m missing cells"""
    whitened_pull: tuple[Tensor, ...]
    """F⁻¹ p (r, m, t) for each group and t tables"""

    def draw(self, normals: Tensor) -> Draws:
        """Map standard normals (p, t, k) to k draws of every missing cell, with gradients."""
        logarithms, log_prob = [normals[:0]], [normals[:0]]
        means = self.missing.split(self.log_mean[self.missing.column])
        parts = zip(
            self.factors, self.whitened_pull, means, self.missing.split(normals), strict=True
        )
        for factors, pull, mean, own in parts:
            white = (own - pull.unsqueeze(-1)).flatten(2)
            deviations = solve_triangular(factors.mT, white, upper=True).view_as(own)
            drawn = deviations + mean[..., None, None]
            log_determinant = factors.diagonal(dim1=1, dim2=2).log().sum(dim=1)
            log_density = -0.5 * own.square() - drawn - 0.5 * math.log(2 * math.pi)
            logarithms.append(drawn.flatten(0, 1))
            log_prob.append(log_density.sum(dim=1) + log_determinant[:, None, None])
        complete = normals.new_zeros(len(self.missing.observed), *normals.shape[1:])
        by_row = complete.index_put((self.missing.incomplete_rows,), torch.cat(log_prob))
        return Draws(torch.cat(logarithms), by_row.permute(1, 2, 0))


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

"""Normal noise with any covariance."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from vnce_engine.distributions.gaussian_conditional import log_marginal
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.runtime.checks import check_count, check_positive


@dataclass(frozen=True)
class GaussianNoise:
    """The normal distribution N(mean, L Lᵀ); a `NoiseDistribution`."""

    mean: Tensor
    """(d,)"""
    cholesky: Tensor
    """L (d, d), lower triangular, its diagonal positive."""

    @classmethod
    def fit(cls, u: Tensor, scale: float = 1.0) -> "GaussianNoise":
        """Match mean and covariance of complete rows u (n, d); `scale` > 0 widens every spread.

        Raises `ValueError` where a cell is missing or the covariance is singular.
        """
        check_positive("scale", scale)
        if torch.isnan(u).any():
            raise ValueError("`u` must be complete to give a covariance; fit its columns alone")
        factor, info = torch.linalg.cholesky_ex(torch.atleast_2d(torch.cov(u.mT, correction=0)))
        if info:
            raise ValueError("`u` must have a covariance of full rank: leave out columns")
        return cls(u.mean(dim=0), scale * factor)

    @classmethod
    def fit_columns(cls, u: Tensor, scale: float = 1.0) -> "GaussianNoise":
        """Match mean and variance of the observed cells of each column of u (n, d), NaN missing.

        Raises `ValueError` naming the first column without two different observed values.
        """
        check_positive("scale", scale)
        mean = u.nanmean(dim=0)
        variance = (u - mean).square().nanmean(dim=0)
        constant = ~(variance > 0)
        if constant.any():
            column = int(constant.nonzero()[0])
            raise ValueError(
                f"column {column} (counted from 0) needs at least two different observed values"
            )
        return cls(mean, torch.diag(scale * variance.sqrt()))

    @classmethod
    def isotropic(cls, variance: float, d: int) -> "GaussianNoise":
        """Return N(0, variance I) in d dimensions."""
        check_positive("variance", variance)
        check_count("d", d)
        identity = torch.eye(d, dtype=torch.float64)
        return cls(torch.zeros(d, dtype=torch.float64), math.sqrt(variance) * identity)

    def sample(self, uniforms: Tensor) -> Tensor:
        """Map uniforms (n, d) in (0, 1) to rows (n, d)."""
        standard: Tensor = torch.special.ndtri(uniforms)
        return self.mean + standard @ self.cholesky.mT

    def log_prob(self, u: Tensor) -> Tensor:
        """Return the log density (n,) of rows u (n, d), of their observed cells if some are NaN."""
        observed = ~torch.isnan(u)
        independent = torch.equal(self.cholesky, torch.diag(self.cholesky.diagonal()))
        if independent or observed.all():
            return self._log_prob_of_cells(u, observed)
        precision = torch.cholesky_inverse(self.cholesky)
        return log_marginal(QuadraticModel.normal(self.mean, precision), u)

    def _log_prob_of_cells(self, u: Tensor, observed: Tensor) -> Tensor:
        """Return `log_prob` of rows that are complete, or of independent columns."""
        centred = torch.where(observed, u - self.mean, 0.0).mT
        standard: Tensor = torch.linalg.solve_triangular(self.cholesky, centred, upper=False)
        each = standard.mT.square() + math.log(2 * math.pi) + 2 * self.cholesky.diagonal().log()
        return -0.5 * torch.where(observed, each, 0.0).sum(dim=1)

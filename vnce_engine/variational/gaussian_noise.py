"""Normal noise with any covariance."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class GaussianNoise:
    """The normal distribution N(mean, L Lᵀ); a `NoiseDistribution`."""

    mean: Tensor
    """(d,)"""
    cholesky: Tensor
    """L (d, d), lower triangular, its diagonal positive."""

    @classmethod
    def fit(cls, u: Tensor, scale: float = 1.0) -> "GaussianNoise":
        """Match mean and covariance of rows u (n, d); `scale` > 0 widens every spread.

        Raises `ValueError` where the covariance is singular.
        """
        if not (scale > 0 and math.isfinite(scale)):
            raise ValueError(f"`scale` must be positive and finite, got {scale!r}")
        factor, info = torch.linalg.cholesky_ex(torch.atleast_2d(torch.cov(u.mT, correction=0)))
        if info:
            raise ValueError("`u` must have a covariance of full rank: leave out columns")
        return cls(u.mean(dim=0), scale * factor)

    @classmethod
    def isotropic(cls, variance: float, d: int) -> "GaussianNoise":
        """Return N(0, variance I) in d dimensions."""
        identity = torch.eye(d, dtype=torch.float64)
        return cls(torch.zeros(d, dtype=torch.float64), math.sqrt(variance) * identity)

    def sample(self, uniforms: Tensor) -> Tensor:
        """Map uniforms (n, d) in (0, 1) to rows (n, d)."""
        standard: Tensor = torch.special.ndtri(uniforms)
        return self.mean + standard @ self.cholesky.mT

    def log_prob(self, u: Tensor) -> Tensor:
        """Return the log density (n,) of rows u (n, d)."""
        centred = (u - self.mean).mT
        standard: Tensor = torch.linalg.solve_triangular(self.cholesky, centred, upper=False)
        log_volume = self.cholesky.diagonal().log().sum()
        d = self.mean.shape[0]
        return -0.5 * (standard.square().sum(dim=0) + d * math.log(2 * math.pi)) - log_volume

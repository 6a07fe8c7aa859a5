"""Normal q(z | u) whose mean is affine in u and whose spread is the same for every row."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

_LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class AffineNormal:
    """q(z | u) = N(W u + b, diag(sd²)), a `VariationalFamily`.

    alpha holds W (m, d) row by row, b (m,) and the m values of log sd. The family contains the
    posterior of every model in which log phi is quadratic in z with a constant, diagonal curvature
    and a slope that is affine in u.
    """

    observed_width: int
    latent_width: int

    @property
    def num_parameters(self) -> int:
        """The length of alpha."""
        return self.latent_width * (self.observed_width + 2)

    def rsample(self, alpha: Tensor, u: Tensor, uniforms: Tensor) -> Tensor:
        """Map uniforms (k, n, m) in (0, 1) to draws z (k, n, m)."""
        mean, log_sd = self.moments(alpha, u)
        standard: Tensor = torch.special.ndtri(uniforms)
        return mean + log_sd.exp() * standard

    def log_prob(self, alpha: Tensor, z: Tensor, u: Tensor) -> Tensor:
        """Return log q(z | u), (k, n), for z (k, n, m) and u (n, d)."""
        mean, log_sd = self.moments(alpha, u)
        squares = ((z - mean) * torch.exp(-log_sd)).square()
        return -(0.5 * squares + log_sd + _LOG_ROOT_TAU).sum(dim=-1)

    def moments(self, alpha: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean (n, m) and log sd (m,)."""
        m, d = self.latent_width, self.observed_width
        weights, bias, log_sd = alpha.split([m * d, m, m])
        return u @ weights.view(m, d).mT + bias, log_sd

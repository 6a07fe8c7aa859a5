"""The product-latent toy of the paper's Section 4.1: two latents, two visibles, no parameters.

p(z) = N(0, I), p(x | z) = N(x; (z_1 z_2, z_1 z_2), c² I) with c = 0.3.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

_LOG_TAU = math.log(2 * math.pi)
# The integral over z_1 by the trapezoid rule. Beyond ±9 a standard normal has 1e-18 of its mass,
# and steps of a hundredth of c are far finer than anything that the integrand does.
_REACH, _NUM_NODES = 9.0, 6001
# Rows integrated at a time: 24 MB.
_BLOCK_ROWS = 500


@dataclass(frozen=True)
class ProductLatent:
    """The model, an `UnnormalisedModel` whose density is normalised and whose theta is empty."""

    scale: float = 0.3
    """The paper's c."""

    def log_phi(self, theta: Tensor, u: Tensor, z: Tensor) -> Tensor:
        """Return log p(u, z), (k, n), for u (n, 2) and z (k, n, 2); theta is not used."""
        prior = -0.5 * z.square().sum(dim=-1) - _LOG_TAU
        mean = z.prod(dim=-1, keepdim=True)
        residual = (u - mean) / self.scale
        likelihood = -0.5 * residual.square().sum(dim=-1) - _LOG_TAU - 2 * math.log(self.scale)
        return prior + likelihood

    def sample(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw rows x (n, 2) and their latents z (n, 2)."""
        normals = torch.randn(n, 4, dtype=torch.float64, generator=generator)
        z, noise = normals.split(2, dim=1)
        return z.prod(dim=1, keepdim=True) + self.scale * noise, z

    def log_marginal(self, u: Tensor) -> Tensor:
        """Return log p(u) (n,) of u (n, 2), to rounding.

        Given z_1, u is normal with variance c² + 2 z_1² along (1, 1) and c² across.
        """
        return torch.cat([self._log_marginal(rows) for rows in u.split(_BLOCK_ROWS)])

    def elbo(self, u: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
        """Return E_q[log p(u, z) - log q(z)] (n,) for q = N(mean, diag(variance)), each (n, 2).

        It is exact: log p(u, z) is a polynomial in z, of which q's moments are known.
        log p(u) less it is KL(q || posterior).
        """
        second = mean.square() + log_variance.exp()  # E z²
        product, square = mean.prod(dim=1), second.prod(dim=1)  # E z_1 z_2 and E (z_1 z_2)²
        residual = u.square().sum(dim=1) - 2 * u.sum(dim=1) * product + 2 * square
        quadratic = residual / self.scale**2 + second.sum(dim=1)
        expected = -2 * _LOG_TAU - 2 * math.log(self.scale) - 0.5 * quadratic
        entropy = 1 + _LOG_TAU + 0.5 * log_variance.sum(dim=1)
        return expected + entropy

    def _log_marginal(self, u: Tensor) -> Tensor:
        along, across = u.sum(dim=1) / math.sqrt(2), (u[:, 0] - u[:, 1]) / math.sqrt(2)
        z = torch.linspace(-_REACH, _REACH, _NUM_NODES, dtype=u.dtype, device=u.device)
        variance = self.scale**2 + 2 * z.square()
        squares = along.square().unsqueeze(1) / variance + z.square()
        log_along = torch.logsumexp(-0.5 * (squares + variance.log()), dim=1) - _LOG_TAU
        log_step = math.log(2 * _REACH / (_NUM_NODES - 1))
        log_across = -0.5 * ((across / self.scale).square() + _LOG_TAU) - math.log(self.scale)
        return log_along + log_step + log_across

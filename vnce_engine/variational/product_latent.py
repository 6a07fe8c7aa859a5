"""The product-latent toy of the paper's Section 4.1: two latents, two visibles, no parameters.

p(z) = N(0, I), p(x | z) = N(x; (z_1 z_2, z_1 z_2), c² I) with c = 0.3.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

_LOG_TAU = math.log(2 * math.pi)


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

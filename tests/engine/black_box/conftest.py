"""A harmonium with a quartic visible layer: unnormalised, with a continuous latent.

    log phi(x, z) = -½ z² + z wᵀx - ½ |x|² - tau/4 Σ x_j⁴ - c,   x in R²

Its posterior is N(wᵀx, 1), its latent can be integrated out, and two visibles can be summed on a
grid, so that everything about it is known to rounding.
"""

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor


@dataclass(frozen=True)
class Harmonium:
    """The model; theta = (w_1, w_2, tau, c)."""

    def log_phi(self, theta: Tensor, u: Tensor, z: Tensor) -> Tensor:
        weights, tau, c = theta.split([2, 1, 1])
        visible = 0.5 * u.square().sum(dim=-1) + tau / 4 * u.pow(4).sum(dim=-1)
        latent = z[..., 0]
        return latent * (u @ weights) - 0.5 * latent.square() - visible - c

    def log_marginal(self, theta: Tensor, u: Tensor) -> Tensor:
        weights, tau, c = theta.split([2, 1, 1])
        visible = 0.5 * u.square().sum(dim=-1) + tau / 4 * u.pow(4).sum(dim=-1)
        return 0.5 * (u @ weights).square() + 0.5 * math.log(2 * math.pi) - visible - c

    def grid(self) -> tuple[Tensor, float]:
        """Return points (g, 2) that cover all of the density, and the area each stands for."""
        line = torch.linspace(-6, 6, 481, dtype=torch.float64)
        return torch.cartesian_prod(line, line), float(line[1] - line[0]) ** 2

    def normalised(self, weights: tuple[float, float], tau: float) -> Tensor:
        """Return theta whose c is the log of the integral."""
        points, area = self.grid()
        theta = torch.tensor([*weights, tau, 0.0], dtype=torch.float64)
        log_mass = torch.logsumexp(self.log_marginal(theta, points), dim=0) + math.log(area)
        return torch.cat([theta[:3], log_mass.unsqueeze(0)])

    def sample(self, theta: Tensor, n: int, generator: torch.Generator) -> Tensor:
        """Draw x (n, 2) from the grid, each point spread over its square."""
        points, area = self.grid()
        mass = torch.softmax(self.log_marginal(theta, points), dim=0)
        chosen = torch.multinomial(mass, n, replacement=True, generator=generator)
        spread = torch.rand(n, 2, dtype=torch.float64, generator=generator) - 0.5
        return points[chosen] + spread * math.sqrt(area)


@pytest.fixture
def harmonium() -> Harmonium:
    return Harmonium()


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(3)

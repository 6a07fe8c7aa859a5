"""Samples of mixtures, and noise to tell them from."""

from dataclasses import dataclass

import torch
from torch import Tensor

from vnce_engine.experiments.mixture.model import KNOWN_SIGMA


@dataclass(frozen=True)
class MixtureData:
    """Samples of b mixtures and noise for each."""

    x: Tensor
    """(b, n)"""
    y: Tensor
    """(b, m): noise"""
    noise_scale: Tensor
    """(b,): the noise's standard deviation"""

    @property
    def nu(self) -> float:
        """Noise values per value of data."""
        return self.y.shape[1] / self.x.shape[1]

    def of(self, mixtures: Tensor) -> "MixtureData":
        """Return the samples of the mixtures of these numbers (a,), which may repeat."""
        return MixtureData(self.x[mixtures], self.y[mixtures], self.noise_scale[mixtures])


def draw_normalised(
    theta: Tensor, n: int, num_noise: int, generator: torch.Generator
) -> MixtureData:
    """Draw n values of each mixture with equal weights, theta (b,), and its noise N(0, theta²)."""
    return _draw(theta, torch.full_like(theta, 0.5), n, num_noise, generator)


def draw_unnormalised(
    theta: Tensor, n: int, num_noise: int, generator: torch.Generator
) -> MixtureData:
    """Draw n values of each unnormalised mixture, theta (b,), and its noise N(0, theta²).

    The components weigh as their standard deviations do, since their densities have equal heights.
    """
    return _draw(theta, KNOWN_SIGMA / (KNOWN_SIGMA + theta), n, num_noise, generator)


def _draw(
    theta: Tensor, known_weight: Tensor, n: int, num_noise: int, generator: torch.Generator
) -> MixtureData:
    def normals(count: int) -> Tensor:
        return torch.randn(len(theta), count, dtype=theta.dtype, generator=generator)

    scale = theta.unsqueeze(1)
    uniforms = torch.rand(len(theta), n, dtype=theta.dtype, generator=generator)
    sigma = torch.where(uniforms < known_weight.unsqueeze(1), KNOWN_SIGMA, scale)
    return MixtureData(sigma * normals(n), scale * normals(num_noise), theta)

"""Normal q(z | u) whose mean and log variances are the outputs of a neural network."""

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

_START_RANGE = 0.05


@dataclass(frozen=True)
class NetworkFamily:
    """q(z | u) = N(mu(u), diag(sigma²(u))), a `VariationalFamily`; alpha are the weights.

    `widths` are those of all layers: d inputs, hidden layers of tanh units, and 2 m outputs, mu
    and log sigma².
    Source: Rhodes and Gutmann (2019), appendix on the toy approximate inference problem.
    """

    widths: tuple[int, ...] = (2, 100, 100, 4)

    @property
    def num_parameters(self) -> int:
        """Weights and biases of all layers."""
        return sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(self.widths))

    def start(self, generator: torch.Generator) -> Tensor:
        """Return weights (a,) drawn from U(-0.05, 0.05), as in the paper."""
        weights = torch.empty(self.num_parameters, dtype=torch.float64)
        weights.uniform_(-_START_RANGE, _START_RANGE, generator=generator)
        return weights

    def rsample(self, alpha: Tensor, u: Tensor, uniforms: Tensor) -> Tensor:
        """Map uniforms (k, n, m) in (0, 1) to draws z (k, n, m)."""
        mu, log_variance = self.moments(alpha, u)
        standard: Tensor = torch.special.ndtri(uniforms)
        return mu + torch.exp(0.5 * log_variance) * standard

    def log_prob(self, alpha: Tensor, z: Tensor, u: Tensor) -> Tensor:
        """Return log q(z | u), (k, n), for z (k, n, m) and u (n, d)."""
        mu, log_variance = self.moments(alpha, u)
        squares = (z - mu).square() * torch.exp(-log_variance)
        return -0.5 * (squares + log_variance + math.log(2 * math.pi)).sum(dim=-1)

    def moments(self, alpha: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return mu and log sigma² (n, m) of rows u (n, d)."""
        layer = u
        position = 0
        for fan_in, fan_out in pairwise(self.widths):
            if position:
                layer = torch.tanh(layer)
            size = (fan_in + 1) * fan_out
            weights = alpha[position : position + size].view(fan_in + 1, fan_out)
            layer = torch.addmm(weights[-1], layer, weights[:-1])
            position += size
        mu, log_variance = layer.chunk(2, dim=-1)
        return mu, log_variance

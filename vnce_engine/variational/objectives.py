"""The objectives of a model, a family and a noise on given rows and uniforms."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from vnce_engine.objective import ObjectiveTerms, vnce_objective
from vnce_engine.variational.protocols import (
    NoiseDistribution,
    UnnormalisedModel,
    VariationalFamily,
)


@dataclass(frozen=True)
class ContrastiveProblem:
    """Data and noise rows with fixed uniforms: VNCE's objective as a fixed smooth surface."""

    model: UnnormalisedModel
    family: VariationalFamily
    x: Tensor
    """Data rows (n, d)."""
    y: Tensor
    """Noise rows (nu n, d)."""
    log_noise_x: Tensor
    """Noise log density of the data rows (n,)."""
    log_noise_y: Tensor
    uniforms_x: Tensor
    """(k, n, m)"""
    uniforms_y: Tensor
    """(k, nu n, m)"""

    @classmethod
    def draw(
        cls,
        model: UnnormalisedModel,
        family: VariationalFamily,
        noise: NoiseDistribution,
        x: Tensor,
        *,
        latent_width: int,
        nu: int,
        num_draws: int,
        generator: torch.Generator,
    ) -> "ContrastiveProblem":
        """Draw the noise rows and all uniforms."""
        n, d = x.shape
        y = noise.sample(open_uniforms((nu * n, d), generator))
        return cls(
            model=model,
            family=family,
            x=x,
            y=y,
            log_noise_x=noise.log_prob(x),
            log_noise_y=noise.log_prob(y),
            uniforms_x=open_uniforms((num_draws, n, latent_width), generator),
            uniforms_y=open_uniforms((num_draws, nu * n, latent_width), generator),
        )

    @property
    def nu(self) -> float:
        """Noise rows a data row."""
        return len(self.y) / len(self.x)

    def log_ratio_x(self, theta: Tensor, alpha: Tensor) -> Tensor:
        """Return log phi - log q - log p_noise (k, n) of the data rows."""
        z = self.family.rsample(alpha, self.x, self.uniforms_x)
        return log_weight(self.model, self.family, theta, alpha, self.x, z) - self.log_noise_x

    def log_ratio_y(self, theta: Tensor, alpha: Tensor) -> Tensor:
        """Return the same (k, nu n) of the noise rows."""
        z = self.family.rsample(alpha, self.y, self.uniforms_y)
        return log_weight(self.model, self.family, theta, alpha, self.y, z) - self.log_noise_y

    def objective(self, theta: Tensor, alpha: Tensor) -> ObjectiveTerms:
        """Return J_VNCE's two terms, nats a data row.

        q is learnt from the data term alone: with exact expectation the noise term does not depend
        on it, and what dependence finitely many draws bring is bias.
        """
        return vnce_objective(
            self.log_ratio_x(theta, alpha), self.log_ratio_y(theta, alpha.detach()), self.nu
        )


def log_weight(
    model: UnnormalisedModel,
    family: VariationalFamily,
    theta: Tensor,
    alpha: Tensor,
    u: Tensor,
    z: Tensor,
) -> Tensor:
    """Return log phi(u, z) - log q(z | u), (k, n): the log importance weights of draws."""
    return model.log_phi(theta, u, z) - family.log_prob(alpha, z, u)


def data_term(log_ratio: Tensor, nu: float) -> Tensor:
    """Return the mean of log h over draws and rows: the part of J_VNCE that q is learnt from."""
    return logsigmoid(log_ratio - math.log(nu)).mean()


def elbo(log_weights: Tensor) -> Tensor:
    """Return the evidence lower bound, the mean of log p(u, z) - log q(z | u), for VI."""
    return log_weights.mean()


def open_uniforms(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Return independent uniforms strictly between 0 and 1, float64."""
    return torch.rand(shape, dtype=torch.float64, generator=generator).clamp(min=2.0**-54)

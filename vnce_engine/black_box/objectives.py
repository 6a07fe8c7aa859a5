"""The objectives of a model and a family, from log importance weights and log ratios."""

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from vnce_engine.black_box.protocols import UnnormalisedModel, VariationalFamily


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

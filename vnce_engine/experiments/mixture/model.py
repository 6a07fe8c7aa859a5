"""Log densities of the mixture, with the component z in {0, 1} as the latent variable.

z = 1 is the component of known standard deviation sigma_1 = 1, z = 0 that of unknown theta.
Everything is vectorised over a batch of b mixtures: theta and c are (b,), x is (b, n), and log
densities of both components are (2, b, n), that of z = 0 first.
"""

import math

import torch
from torch import Tensor

# The known component's standard deviation, sigma_1.
KNOWN_SIGMA = 1.0
_LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)


def log_joint(theta: Tensor, x: Tensor) -> Tensor:
    """Return log p(x, z) of the normalised mixture with equal weights, equation "mog standard"."""
    theta = theta.unsqueeze(-1)
    sigma = torch.stack([theta, torch.full_like(theta, KNOWN_SIGMA)])
    return -math.log(2) - _LOG_ROOT_TAU - torch.log(sigma) - 0.5 * (x / sigma).square()


def log_phi(theta: Tensor, log_partition: Tensor, x: Tensor) -> Tensor:
    """Return log phi(x, z) of the unnormalised mixture, equation "mog unnormalised".

    `log_partition` is the paper's c (b,), a parameter like any other.
    """
    theta = theta.unsqueeze(-1)
    sigma = torch.stack([theta, torch.full_like(theta, KNOWN_SIGMA)])
    return -log_partition.unsqueeze(-1) - 0.5 * (x / sigma).square()


def true_log_partition(theta: Tensor) -> Tensor:
    """Return the c at which the unnormalised mixture integrates to one."""
    return _LOG_ROOT_TAU + torch.log(theta + KNOWN_SIGMA)


def log_noise(scale: Tensor, y: Tensor) -> Tensor:
    """Return the log density (b, n) of the noise, normal with mean 0; `scale` is its sd (b,)."""
    scale = scale.unsqueeze(-1)
    return -_LOG_ROOT_TAU - torch.log(scale) - 0.5 * (y / scale).square()


def log_posterior(log_density: Tensor) -> Tensor:
    """Return log p(z | x) from the log density of (x, z), normalised or not."""
    return log_density.log_softmax(dim=0)


def log_bernoulli(weights: Tensor, x: Tensor) -> Tensor:
    """Return log q(z | x) of the Bernoulli family with a quadratic logit.

    q(z = 0 | x) = 1 / (1 + exp(w_0 + w_1 x + w_2 x²)), `weights` w are (b, 3). The family contains
    the posterior of both mixtures.
    """
    w = weights.unsqueeze(1)  # (b, 1, 3)
    logit = w[..., 0] + w[..., 1] * x + w[..., 2] * x.square()
    return torch.stack(
        [-torch.nn.functional.softplus(logit), -torch.nn.functional.softplus(-logit)]
    )

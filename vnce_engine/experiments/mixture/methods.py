"""Estimators of the mixture as objectives of a few parameters: VNCE, NCE, maximum likelihood.

All parameters there can be are (log theta, c, w_0, w_1, w_2), the last three those of q; each
method has some of them. Source: Rhodes and Gutmann (2019), Section 4.2.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from vnce_engine.experiments.mixture import objectives
from vnce_engine.experiments.mixture.data import MixtureData
from vnce_engine.experiments.mixture.model import (
    log_bernoulli,
    log_joint,
    log_noise,
    log_phi,
    true_log_partition,
)

# Places of q's weights among all parameters.
_Q = (2, 3, 4)


@dataclass(frozen=True)
class Method:
    """An estimator as an objective of its parameters, the first of which is log theta."""

    places: tuple[int, ...]
    """Which of all parameters are the method's own, p of them."""
    objective: Callable[[Tensor, MixtureData], Tensor]
    """Of parameters (b, p) and data, (b,)."""


def normalised_density(parameters: Tensor, x: Tensor) -> Tensor:
    """Return the log density of (x, z) (2, b, n); `parameters` (b, 1) are log theta."""
    return log_joint(parameters[:, 0].exp(), x)


def unnormalised_density(parameters: Tensor, x: Tensor) -> Tensor:
    """Return log phi(x, z) (2, b, n); `parameters` (b, 2) are log theta and c."""
    return log_phi(parameters[:, 0].exp(), parameters[:, 1], x)


Density = Callable[[Tensor, Tensor], Tensor]


def nce_objective(density: Density, parameters: Tensor, data: MixtureData) -> Tensor:
    """Return J_NCE (b,) of a model by its `density`."""
    return objectives.nce(
        density(parameters, data.x),
        density(parameters, data.y),
        log_noise(data.noise_scale, data.x),
        log_noise(data.noise_scale, data.y),
        data.nu,
    )


def vnce_objective(
    density: Density, parameters: Tensor, log_q: Tensor, data: MixtureData
) -> Tensor:
    """Return J_VNCE (b,) of a model by its `density`, for log q(z | x) (2, b, n)."""
    return objectives.vnce(
        density(parameters, data.x),
        log_q,
        density(parameters, data.y),
        log_noise(data.noise_scale, data.x),
        log_noise(data.noise_scale, data.y),
        data.nu,
    )


def _unnormalised_nce(parameters: Tensor, data: MixtureData) -> Tensor:
    return nce_objective(unnormalised_density, parameters, data)


def _unnormalised_vnce(parameters: Tensor, data: MixtureData) -> Tensor:
    log_q = log_bernoulli(parameters[:, 2:], data.x)
    return vnce_objective(unnormalised_density, parameters[:, :2], log_q, data)


def _unnormalised_likelihood(parameters: Tensor, data: MixtureData) -> Tensor:
    theta = parameters[:, 0].exp()
    c = true_log_partition(theta)
    return log_phi(theta, c, data.x).logsumexp(dim=0).mean(dim=-1)


def _normalised_nce(parameters: Tensor, data: MixtureData) -> Tensor:
    return nce_objective(normalised_density, parameters, data)


def _normalised_vnce(parameters: Tensor, data: MixtureData) -> Tensor:
    log_q = log_bernoulli(parameters[:, 1:], data.x)
    return vnce_objective(normalised_density, parameters[:, :1], log_q, data)


def _normalised_likelihood(parameters: Tensor, data: MixtureData) -> Tensor:
    return normalised_density(parameters, data.x).logsumexp(dim=0).mean(dim=-1)


UNNORMALISED: dict[str, Method] = {
    "VNCE": Method((0, 1, *_Q), _unnormalised_vnce),
    "NCE": Method((0, 1), _unnormalised_nce),
    "MLE": Method((0,), _unnormalised_likelihood),
}
NORMALISED: dict[str, Method] = {
    "VNCE": Method((0, *_Q), _normalised_vnce),
    "NCE": Method((0,), _normalised_nce),
    "MLE": Method((0,), _normalised_likelihood),
}


def log_partition(method: Method, parameters: Tensor) -> Tensor:
    """Return c (b,) of the unnormalised mixture: a parameter (b, p), or what theta makes it."""
    if len(method.places) > 1:
        return parameters[:, 1]
    return true_log_partition(parameters[:, 0].exp())

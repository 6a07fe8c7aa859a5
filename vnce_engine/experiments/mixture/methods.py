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
    log_phi,
    true_log_partition,
)
from vnce_engine.experiments.mixture.objectives import Density

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


def _methods(density: Density, num_own: int, likelihood: Density) -> dict[str, Method]:
    """Return the methods of a density with so many parameters; `likelihood` is normalised."""
    own = tuple(range(num_own))

    def vnce(parameters: Tensor, data: MixtureData) -> Tensor:
        log_q = log_bernoulli(parameters[:, num_own:], data.x)
        return objectives.vnce(density, parameters[:, :num_own], log_q, data, data.nu)

    def nce(parameters: Tensor, data: MixtureData) -> Tensor:
        return objectives.nce(density, parameters, data, data.nu)

    def mle(parameters: Tensor, data: MixtureData) -> Tensor:
        return likelihood(parameters, data.x).logsumexp(dim=0).mean(dim=-1)

    return {"VNCE": Method((*own, *_Q), vnce), "NCE": Method(own, nce), "MLE": Method((0,), mle)}


def _with_true_partition(parameters: Tensor, x: Tensor) -> Tensor:
    theta = parameters[:, 0].exp()
    return log_phi(theta, true_log_partition(theta), x)


UNNORMALISED = _methods(unnormalised_density, 2, _with_true_partition)
NORMALISED = _methods(normalised_density, 1, normalised_density)


def log_partition(method: Method, parameters: Tensor) -> Tensor:
    """Return c (b,) of the unnormalised mixture: a parameter (b, p), or what theta makes it."""
    if len(method.places) > 1:
        return parameters[:, 1]
    return true_log_partition(parameters[:, 0].exp())

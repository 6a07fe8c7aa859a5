"""Estimates of the unnormalised mixture's theta and c: VNCE, NCE and maximum likelihood.

Each estimator is started from several points, and what its own objective likes best is kept.
Source: Rhodes and Gutmann (2019), Section 4.2 and the appendix on its experiment.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from vnce_engine.batched_bfgs import Objective, maximise
from vnce_engine.mixture import objectives
from vnce_engine.mixture.data import MixtureData
from vnce_engine.mixture.model import log_bernoulli, log_noise, log_phi, true_log_partition

# Nats a row below the best known optimum from which an optimum counts as a local one.
LOCAL_GAP = 1e-5
# Noise rows a data row.
NU = 1.0
# theta's starting values lie between these, far to both sides of the truth.
_LOWEST_START, _HIGHEST_START = 0.2, 20.0


@dataclass(frozen=True)
class MixtureEstimates:
    """Estimates of b mixtures."""

    theta: Tensor
    """(b,)"""
    log_partition: Tensor
    """(b,): c"""
    is_local: Tensor
    """bool (b,): whether the kept optimum is below the best known one"""
    local_share: Tensor
    """(b,): share of single starts that end in such an optimum"""


@dataclass(frozen=True)
class Method:
    """An estimator as an objective of its parameters, the first of which is log theta."""

    num_parameters: int
    objective: Callable[[Tensor, MixtureData], Tensor]
    """Of parameters (b, p) and data, (b,)."""
    log_partition: Callable[[Tensor], Tensor]
    """Read c (b,) from parameters."""
    exact: Callable[[Tensor], Tensor]
    """Parameters (b, p) of the mixtures with these theta (b,): where the optimum ought to be."""


def _log_densities(parameters: Tensor, data: MixtureData) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    theta, c = parameters[:, 0].exp(), parameters[:, 1]
    return (
        log_phi(theta, c, data.x),
        log_phi(theta, c, data.y),
        log_noise(data.noise_scale, data.x),
        log_noise(data.noise_scale, data.y),
    )


def _nce(parameters: Tensor, data: MixtureData) -> Tensor:
    return objectives.nce(*_log_densities(parameters, data), nu=NU)


def _vnce(parameters: Tensor, data: MixtureData) -> Tensor:
    of_x, of_y, noise_x, noise_y = _log_densities(parameters, data)
    log_q = log_bernoulli(parameters[:, 2:], data.x)
    return objectives.vnce(of_x, log_q, of_y, noise_x, noise_y, nu=NU)


def _log_likelihood(parameters: Tensor, data: MixtureData) -> Tensor:
    theta = parameters[:, 0].exp()
    c = true_log_partition(theta)
    return log_phi(theta, c, data.x).logsumexp(dim=0).mean(dim=-1)


def _exact_nce(theta: Tensor) -> Tensor:
    return torch.stack([theta.log(), true_log_partition(theta)], dim=1)


def _exact_vnce(theta: Tensor) -> Tensor:
    # The posterior's logit of z = 1 against z = 0 is x²/2 (1/theta² - 1/sigma_1²), sigma_1 = 1.
    zero = torch.zeros_like(theta)
    quadratic = 0.5 * (theta**-2 - 1)
    return torch.cat([_exact_nce(theta), torch.stack([zero, zero, quadratic], dim=1)], dim=1)


METHODS: dict[str, Method] = {
    "VNCE": Method(5, _vnce, lambda parameters: parameters[:, 1], _exact_vnce),
    "NCE": Method(2, _nce, lambda parameters: parameters[:, 1], _exact_nce),
    "MLE": Method(
        1,
        _log_likelihood,
        lambda parameters: true_log_partition(parameters[:, 0].exp()),
        lambda theta: theta.log().unsqueeze(1),
    ),
}


def random_starts(num: int, c_range: tuple[float, float], generator: torch.Generator) -> Tensor:
    """Return starting points (num, 5) of VNCE; the first columns serve the other estimators.

    theta is log-uniform from 0.2 to 20, c uniform over `c_range`, the weights of q standard normal,
    that of x² a tenth of it.
    """
    uniforms = torch.rand(num, 2, dtype=torch.float64, generator=generator)
    weights = torch.randn(num, 3, dtype=torch.float64, generator=generator)
    log_theta = math.log(_LOWEST_START) + uniforms[:, :1] * math.log(_HIGHEST_START / _LOWEST_START)
    c = c_range[0] + (c_range[1] - c_range[0]) * uniforms[:, 1:]
    return torch.cat([log_theta, c, weights * weights.new_tensor([1.0, 1.0, 0.1])], dim=1)


def estimate(
    method: Method, data: MixtureData, starts: Tensor, true_theta: Tensor
) -> MixtureEstimates:
    """Return the best of `starts` (s, b, 5) for each of b mixtures by the method's objective.

    `true_theta` (b,) gives one more start, which counts only in the judgement of what is a local
    optimum: one more than `LOCAL_GAP` below the best that any start, the truth's too, has led to.
    """
    num_starts, num_mixtures = starts.shape[:2]
    p = method.num_parameters
    points = torch.cat([starts[:, :, :p], method.exact(true_theta).unsqueeze(0)]).reshape(-1, p)
    found = maximise(_of(method, data, num_mixtures), points)
    values = found.values.view(num_starts + 1, num_mixtures)
    best_known = values.max(dim=0).values
    kept_value, kept = values[:-1].max(dim=0)
    parameters = found.parameters.view(num_starts + 1, num_mixtures, p)
    chosen = parameters[kept, torch.arange(num_mixtures)]
    return MixtureEstimates(
        theta=chosen[:, 0].exp(),
        log_partition=method.log_partition(chosen),
        is_local=kept_value < best_known - LOCAL_GAP,
        local_share=(values[:-1] < best_known - LOCAL_GAP).double().mean(dim=0),
    )


def _of(method: Method, data: MixtureData, num_mixtures: int) -> Objective:
    def objective(parameters: Tensor, rows: Tensor) -> Tensor:
        return method.objective(parameters, data.of(rows % num_mixtures))

    return objective

"""Estimates of the unnormalised mixture's theta and c: VNCE, NCE and maximum likelihood.

Each estimator is started from several points, and what its own objective likes best is kept.
Source: Rhodes and Gutmann (2019), Section 4.2 and the appendix on its experiment.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from vnce_engine.experiments.mixture.data import MixtureData
from vnce_engine.experiments.mixture.methods import Method, log_partition
from vnce_engine.experiments.mixture.model import true_log_partition
from vnce_engine.optim.batched_bfgs import Objective, maximise

# Nats a row below the best known optimum from which an optimum counts as a local one.
LOCAL_GAP = 1e-5
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


def random_starts(num: int, c_range: tuple[float, float], generator: torch.Generator) -> Tensor:
    """Return starting points (num, 5): values of all parameters that any method has.

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
    places = list(method.places)
    p = len(places)
    points = torch.cat([starts, _exact(true_theta).unsqueeze(0)])[:, :, places].reshape(-1, p)
    found = maximise(_of(method, data, num_mixtures), points)
    values = found.values.view(num_starts + 1, num_mixtures)
    best_known = values.max(dim=0).values
    kept_value, kept = values[:-1].max(dim=0)
    parameters = found.parameters.view(num_starts + 1, num_mixtures, p)
    chosen = parameters[kept, torch.arange(num_mixtures)]
    return MixtureEstimates(
        theta=chosen[:, 0].exp(),
        log_partition=log_partition(method, chosen),
        is_local=kept_value < best_known - LOCAL_GAP,
        local_share=(values[:-1] < best_known - LOCAL_GAP).double().mean(dim=0),
    )


def _exact(theta: Tensor) -> Tensor:
    """Return all parameters (b, 5) of the mixtures with these theta (b,), q at the posterior."""
    # The posterior's logit of z = 1 against z = 0 is x²/2 (1/theta² - 1/sigma_1²), sigma_1 = 1.
    zero = torch.zeros_like(theta)
    quadratic = 0.5 * (theta**-2 - 1)
    return torch.stack([theta.log(), true_log_partition(theta), zero, zero, quadratic], dim=1)


def _of(method: Method, data: MixtureData, num_mixtures: int) -> Objective:
    def objective(parameters: Tensor, rows: Tensor) -> Tensor:
        return method.objective(parameters, data.of(rows % num_mixtures))

    return objective

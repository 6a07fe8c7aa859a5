"""The EM algorithm for VNCE on the normalised mixture, whose posterior is known.

Source: Rhodes and Gutmann (2019), Corollary 1 and Section 4.2.
"""

import torch
from torch import Tensor

from vnce_engine.experiments.mixture import objectives
from vnce_engine.experiments.mixture.data import MixtureData
from vnce_engine.experiments.mixture.model import log_joint, log_noise, log_posterior
from vnce_engine.optim.batched_bfgs import maximise


def nce_objective(theta: Tensor, data: MixtureData, nu: float) -> Tensor:
    """Return J_NCE (b,) at theta (b,)."""
    return objectives.nce(
        log_joint(theta, data.x),
        log_joint(theta, data.y),
        log_noise(data.noise_scale, data.x),
        log_noise(data.noise_scale, data.y),
        nu,
    )


def vnce_objective(theta: Tensor, log_q: Tensor, data: MixtureData, nu: float) -> Tensor:
    """Return J_VNCE (b,) at theta (b,) and log q(z | x) (2, b, n)."""
    return objectives.vnce(
        log_joint(theta, data.x),
        log_q,
        log_joint(theta, data.y),
        log_noise(data.noise_scale, data.x),
        log_noise(data.noise_scale, data.y),
        nu,
    )


def e_step(theta: Tensor, data: MixtureData) -> Tensor:
    """Return log q(z | x) (2, b, n): the posterior at theta, at which the bound is tight."""
    return log_posterior(log_joint(theta, data.x))


def nce_maximum(theta: Tensor, data: MixtureData, nu: float) -> Tensor:
    """Return the theta (b,) at which J_NCE is largest, sought from `theta` upwards."""

    def objective(log_theta: Tensor, rows: Tensor) -> Tensor:
        return nce_objective(log_theta[:, 0].exp(), data.of(rows), nu)

    return maximise(objective, theta.log().unsqueeze(1)).parameters[:, 0].exp()


def m_step(theta: Tensor, log_q: Tensor, data: MixtureData, nu: float) -> Tensor:
    """Return the theta (b,) at which J_VNCE is largest, sought from `theta` upwards."""

    def objective(log_theta: Tensor, rows: Tensor) -> Tensor:
        return vnce_objective(log_theta[:, 0].exp(), log_q[:, rows], data.of(rows), nu)

    return maximise(objective, theta.log().unsqueeze(1)).parameters[:, 0].exp()


def exact_em(theta: Tensor, data: MixtureData, nu: float, num_steps: int) -> Tensor:
    """Return theta (num_steps + 1, b) before and after each pair of steps."""
    path = [theta]
    for _ in range(num_steps):
        path.append(m_step(path[-1], e_step(path[-1], data), data, nu))
    return torch.stack(path)

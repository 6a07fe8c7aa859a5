"""Estimates of theta by VNCE: q learnt with it, in turns with it, or known from it.

All work on fixed uniforms, where the objective is a smooth surface that BFGS can climb. Noise rows
take their draws from the q that a round begins with: there q matters as a proposal alone, and a
surface whose importance weights move with q would reward their bias.
Source: Rhodes and Gutmann (2019), Section 3.2.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from vnce_engine import bfgs
from vnce_engine.objective import vnce_objective
from vnce_engine.progress import OnStep
from vnce_engine.result import FitStatus, FitStep
from vnce_engine.variational.objectives import ContrastiveProblem

# BFGS iterations of one turn of variational EM, as in the paper.
_TURN = 5


@dataclass(frozen=True)
class VariationalFit:
    """Where an estimation ended."""

    theta: Tensor
    """(p,)"""
    alpha: Tensor
    """(a,)"""
    status: FitStatus
    objective_path: tuple[float, ...]
    """J_VNCE after each round, nats a data row."""
    effective_sample_size: float
    """Mean over data rows of (sum w)² / (k sum w²), w = phi / q; 1 where q is the posterior."""


def fit_jointly(
    problem: ContrastiveProblem,
    theta: Tensor,
    alpha: Tensor,
    *,
    max_rounds: int = 20,
    max_iterations: int = 200,
    tolerance: float = 1e-6,
    on_step: OnStep | None = None,
) -> VariationalFit:
    """Raise J_VNCE in theta (p,) and alpha (a,) together from where they are.

    A round climbs to a maximum by at most `max_iterations` BFGS iterations; rounds end when one
    gains less than `tolerance` nats a row.
    """

    def one_round(theta: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        log_ratio_y = _noise_ratio(problem, alpha)

        def loss(both: Tensor) -> Tensor:
            theta_part, alpha_part = both.split([len(theta), len(alpha)])
            log_ratio_x = problem.log_ratio_x(theta_part, alpha_part)
            return -vnce_objective(log_ratio_x, log_ratio_y(theta_part), problem.nu).total

        found = bfgs.minimise(loss, torch.cat([theta, alpha]), max_iterations=max_iterations)
        new_theta, new_alpha = found.parameters.split([len(theta), len(alpha)])
        return new_theta, new_alpha

    return _rounds(problem, theta, alpha, one_round, max_rounds, tolerance, on_step)


def fit_by_variational_em(
    problem: ContrastiveProblem,
    theta: Tensor,
    alpha: Tensor,
    *,
    max_rounds: int = 200,
    tolerance: float = 1e-6,
    on_step: OnStep | None = None,
) -> VariationalFit:
    """Raise J_VNCE in turns: a few BFGS iterations in alpha (E), then as many in theta (M)."""

    def one_round(theta: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        def loss_of_alpha(value: Tensor) -> Tensor:
            log_ratio_x = problem.log_ratio_x(theta, value)
            return -vnce_objective(log_ratio_x, noise_at_theta, problem.nu).total

        noise_at_theta = problem.log_ratio_y(theta, alpha)
        alpha = bfgs.minimise(loss_of_alpha, alpha, max_iterations=_TURN).parameters
        return _m_step(problem, theta, alpha, _TURN), alpha

    return _rounds(problem, theta, alpha, one_round, max_rounds, tolerance, on_step)


def fit_by_exact_em(
    problem: ContrastiveProblem,
    theta: Tensor,
    *,
    max_rounds: int = 200,
    max_iterations: int = 200,
    tolerance: float = 1e-6,
    on_step: OnStep | None = None,
) -> VariationalFit:
    """Raise J_VNCE where the family is the model's own posterior, its alpha being theta.

    The E-step sets q to the posterior at theta, at which the bound is tight, so that J_NCE never
    falls (Corollary 1).
    """

    def one_round(theta: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        new = _m_step(problem, theta, theta, max_iterations)
        return new, new

    return _rounds(problem, theta, theta, one_round, max_rounds, tolerance, on_step)


def _m_step(
    problem: ContrastiveProblem, theta: Tensor, alpha: Tensor, max_iterations: int
) -> Tensor:
    def loss(value: Tensor) -> Tensor:
        return -problem.objective(value, alpha).total

    return bfgs.minimise(loss, theta, max_iterations=max_iterations).parameters


def _noise_ratio(problem: ContrastiveProblem, alpha: Tensor) -> Callable[[Tensor], Tensor]:
    """Return the log ratios of the noise rows as a function of theta, q held at alpha."""
    held = alpha.detach()
    return lambda theta: problem.log_ratio_y(theta, held)


def _rounds(
    problem: ContrastiveProblem,
    theta: Tensor,
    alpha: Tensor,
    one_round: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    max_rounds: int,
    tolerance: float,
    on_step: OnStep | None,
) -> VariationalFit:
    path = [float(problem.objective(theta, alpha).total)]
    status = FitStatus.MAX_ITERATIONS
    for count in range(1, max_rounds + 1):
        new_theta, new_alpha = one_round(theta, alpha)
        value = float(problem.objective(new_theta, new_alpha).total)
        if not torch.isfinite(torch.tensor(value)):
            status = FitStatus.NON_FINITE
            break
        theta, alpha = new_theta, new_alpha
        path.append(value)
        if on_step is not None and on_step(FitStep("fit", count / max_rounds, count, value)):
            status = FitStatus.CANCELLED
            break
        if abs(path[-1] - path[-2]) < tolerance:
            status = FitStatus.CONVERGED
            break
    return VariationalFit(
        theta, alpha, status, tuple(path), _effective_sample_size(problem, theta, alpha)
    )


def _effective_sample_size(problem: ContrastiveProblem, theta: Tensor, alpha: Tensor) -> float:
    log_weights = problem.log_ratio_x(theta, alpha)  # the noise density cancels
    weights = torch.softmax(log_weights, dim=0)
    return float((1 / weights.square().sum(dim=0)).mean() / len(weights))

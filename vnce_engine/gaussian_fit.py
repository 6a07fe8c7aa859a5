"""From observations to a Gaussian by VNCE, whose q is the exact posterior of the missing cells.

Columns are centred and scaled to variance 1, noise is fitted, and Newton's method climbs J_NCE.
With holes the first noise has independent columns; the noise of a second round is the Gaussian
that the first has found, which is near the data and has known marginals for every pattern.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from vnce_engine.device import chosen_device
from vnce_engine.diagnostics import (
    is_separated,
    largest_interaction,
    numerical_warnings,
    separated_share,
    smallest_scaled_eigenvalue,
)
from vnce_engine.fit import NO_OVERLAP
from vnce_engine.gaussian_surface import GaussianSurface
from vnce_engine.model import TruncatedGaussian
from vnce_engine.noise import random_uniforms, sobol_uniforms
from vnce_engine.observations import Observations
from vnce_engine.penalty import Penalty, PenaltyKind, weakest_safe_strength
from vnce_engine.problem import num_parameters
from vnce_engine.progress import OnStep
from vnce_engine.result import Diagnostics, FitResult, FitStatus, FitStep
from vnce_engine.variational.gaussian import GaussianParameters, GroupedRows
from vnce_engine.variational.gaussian_noise import GaussianNoise

# Armijo's constant, and halvings of a step before it is given up.
_SUFFICIENT_GAIN = 1e-4
_MAX_HALVINGS = 30
# The first round's estimate only shapes the second's noise.
_ROUGH_TOLERANCE = 1e-2
# Added to the curvature's diagonal, relative to its mean: a pair that was never seen has none.
_DAMPING = 1e-10

_MESSAGES = {
    FitStatus.CONVERGED: "Newton's step fell below `tol` in every entry of K and h.",
    FitStatus.MAX_ITERATIONS: "The fit stopped, at `max_iter` Newton steps or where no step gained "
    "any more, before the estimates settled. Try a `penalty`, or a larger `max_iter`.",
    FitStatus.NON_FINITE: "The objective became infinite or undefined; the last finite estimate is "
    "returned. Try a `penalty`, and look for extreme values.",
    FitStatus.CANCELLED: "The fit was cancelled; the last estimate is returned.",
}


@dataclass(frozen=True)
class GaussianOptions:
    """What the statistician decides about a fit."""

    noise_ratio: int = 10
    noise_scale: float = 1.0
    """Factor on the noise's standard deviations."""
    noise_draws: str = "sobol"
    """"sobol" or "random"."""
    penalty: float | None = None
    """Strength, as it is for 1000 rows."""
    penalty_kind: PenaltyKind = PenaltyKind.ADAPTIVE
    tolerance: float = 1e-5
    max_iterations: int = 100
    device: str | torch.device = "cpu"
    """Where the fit works; all is drawn on the CPU, so that it does not change the numbers."""


class _Climb(NamedTuple):
    """Where Newton's method ended."""

    theta: Tensor
    surface: GaussianSurface
    status: FitStatus
    path: tuple[float, ...]
    gradient_norm: float


def fit_gaussian(
    observations: Observations, options: GaussianOptions, seed: int, on_step: OnStep | None = None
) -> FitResult:
    """Estimate K, h and c from observations with holes; equal seeds give equal results.

    Raises `ValueError` where a fit without a penalty has as many parameters as rows.
    """
    kept = observations.observed.any(dim=1)
    x = torch.where(observations.observed, observations.values, torch.nan)[kept]
    x = x.to(chosen_device(options.device))
    _refuse_unbounded(len(x), x.shape[1], options)
    mean = x.nanmean(dim=0)
    scale = (x - mean).square().nanmean(dim=0).sqrt()
    x = (x - mean) / scale
    penalty = Penalty(options.penalty or 0.0, options.penalty_kind, torch.ones_like(scale), len(x))
    generator = torch.Generator().manual_seed(seed)
    climb = _climb_in_rounds(x, penalty, options, generator, on_step)
    parameters = GaussianParameters.unpack(climb.theta.cpu(), len(scale))
    diagnostics = _diagnose(climb, parameters.precision, observations, options)
    return FitResult(
        model=_unstandardised(parameters, mean.cpu(), scale.cpu()),
        status=climb.status,
        message=_MESSAGES[climb.status] + (NO_OVERLAP if is_separated(diagnostics) else ""),
        objective_path=climb.path,
        num_iterations=len(climb.path) - 1,
        penalty=options.penalty,
        penalty_path=(),
        linear_choice="free",
        linear_evidence=None,
        diagnostics=diagnostics,
        warnings=numerical_warnings(diagnostics, (), observations),
    )


def _refuse_unbounded(num_rows: int, num_columns: int, options: GaussianOptions) -> None:
    needed = num_parameters(num_columns)
    weakest = weakest_safe_strength(options.penalty_kind)
    if needed >= num_rows and (options.penalty is None or options.penalty < weakest):
        raise ValueError(
            f"`penalty` must be at least {weakest:g} with {needed} parameters and {num_rows} rows, "
            f"got {options.penalty!r}: the estimates would be unbounded"
        )


def _climb_in_rounds(
    x: Tensor,
    penalty: Penalty,
    options: GaussianOptions,
    generator: torch.Generator,
    on_step: OnStep | None,
) -> _Climb:
    """Return the fit to standardised rows x (n, d), with noise that has learnt from the data."""
    d = x.shape[1]
    independent = GaussianNoise.fit_columns(x, options.noise_scale)
    start = GaussianParameters.normalised(
        x.new_zeros(d), torch.eye(d, dtype=x.dtype, device=x.device)
    ).packed()
    rough = replace(options, tolerance=max(options.tolerance, _ROUGH_TOLERANCE))
    first = _climb(start, _surface(x, independent, penalty, options, generator), rough, on_step)
    if first.status is not FitStatus.CONVERGED:
        return first
    found = GaussianParameters.unpack(first.theta, d)
    noise = _noise_like(found, options.noise_scale)
    surface = _surface(x, noise, penalty, options, generator)
    second = _climb(first.theta, surface, options, on_step, len(first.path) - 1)
    return second._replace(path=first.path + second.path[1:])


def _noise_like(parameters: GaussianParameters, scale: float) -> GaussianNoise:
    factor = torch.linalg.cholesky(parameters.precision)
    covariance = torch.cholesky_inverse(factor)
    mean = covariance @ parameters.linear
    return GaussianNoise(mean, scale * torch.linalg.cholesky(covariance))


def _surface(
    x: Tensor,
    noise: GaussianNoise,
    penalty: Penalty,
    options: GaussianOptions,
    generator: torch.Generator,
) -> GaussianSurface:
    """Set the data against noise rows that carry their missing cells."""
    n, d = x.shape
    num_noise = options.noise_ratio * n
    if options.noise_draws == "sobol":
        seed = int(torch.randint(2**31, (1,), generator=generator))
        uniforms = sobol_uniforms(num_noise, d, seed)
    else:
        uniforms = random_uniforms(num_noise, d, generator)
    holes = torch.isnan(x).repeat(options.noise_ratio, 1)
    rows = noise.sample(uniforms.to(x.device))
    u = torch.cat([x, torch.where(holes, torch.nan, rows)])
    return GaussianSurface(GroupedRows.of(u), noise.log_prob(u), n, penalty)


# Share of the objective below which a gain is rounding.
_ROUNDING = 1e-9


def _climb(
    theta: Tensor,
    surface: GaussianSurface,
    options: GaussianOptions,
    on_step: OnStep | None,
    steps_done: int = 0,
) -> _Climb:
    """Climb by Newton's method; K stays positive definite, as the line search turns back."""
    value = surface.value(theta)
    path = [value]
    status = FitStatus.MAX_ITERATIONS
    expansion = surface.expand(theta)
    for iteration in range(steps_done + 1, options.max_iterations + 1):
        step = _newton_direction(expansion.curvature, expansion.gradient)
        if not step.isfinite().all():
            status = FitStatus.NON_FINITE
            break
        promised = float(step @ expansion.gradient)
        size, value = _line_search(surface, theta, step, value, promised)
        theta = theta + size * step
        path.append(value)
        expansion = surface.expand(theta)
        report = FitStep("fit", iteration / options.max_iterations, iteration, value)
        if on_step is not None and on_step(report):
            status = FitStatus.CANCELLED
            break
        # The whole of the step counts: one cut short by the search says that there is far to go.
        if float(step[:-1].abs().max()) < options.tolerance:
            status = FitStatus.CONVERGED
            break
        if size == 0:
            # Where the step promised no more than rounding, there is nowhere left to go.
            has_arrived = promised <= _ROUNDING * max(1.0, abs(value))
            status = FitStatus.CONVERGED if has_arrived else FitStatus.MAX_ITERATIONS
            break
    gradient_norm = float(torch.linalg.norm(expansion.gradient))
    return _Climb(theta, surface, status, tuple(path), gradient_norm)


def _newton_direction(curvature: Tensor, gradient: Tensor) -> Tensor:
    size = _DAMPING * curvature.diagonal().mean()
    damped = curvature + size * torch.eye(
        len(gradient), dtype=gradient.dtype, device=gradient.device
    )
    factor, info = torch.linalg.cholesky_ex(damped)
    if info > 0:
        return torch.full_like(gradient, math.nan)
    return torch.cholesky_solve(gradient.unsqueeze(1), factor).squeeze(1)


def _line_search(
    surface: GaussianSurface, theta: Tensor, step: Tensor, value: float, promised: float
) -> tuple[float, float]:
    """Return how much of the step gains enough, halved as often as needed, and the value there.

    Where nothing gains, the size is 0. As the value is -inf where K is indefinite, no step ends
    there.
    """
    size = 1.0
    for _ in range(_MAX_HALVINGS):
        reached = surface.value(theta + size * step)
        if reached >= value + _SUFFICIENT_GAIN * size * promised:
            return size, reached
        size /= 2
    return 0.0, value


def _diagnose(
    climb: _Climb, precision: Tensor, observations: Observations, options: GaussianOptions
) -> Diagnostics:
    logits = climb.surface.log_ratio(climb.theta) - climb.surface.log_nu
    wrong = torch.sigmoid(-logits[: climb.surface.num_data])
    smallest = smallest_scaled_eigenvalue(precision)
    num_missing = int((~observations.observed).sum())
    return Diagnostics(
        gradient_norm=climb.gradient_norm,
        # q is the posterior: every draw weighs the same.
        effective_sample_size=1.0 if num_missing else None,
        smallest_eigenvalue=smallest,
        is_positive_definite=smallest > 0,
        separated_share=separated_share(wrong),
        mean_classification=float(wrong.mean()),
        largest_interaction=largest_interaction(precision, 1 / precision.diagonal()),
        num_rows=observations.num_rows,
        num_empty_rows=int((~observations.observed.any(dim=1)).sum()),
        num_missing=num_missing,
        num_draws=0,
        noise_ratio=options.noise_ratio,
    )


def _unstandardised(
    parameters: GaussianParameters, mean: Tensor, scale: Tensor
) -> TruncatedGaussian:
    """Return the density of mean + scale * x when `parameters` are those of x."""
    stretched = TruncatedGaussian(*parameters).with_columns_scaled(scale)
    shift = stretched.precision @ mean
    linear = stretched.linear + shift
    log_partition = stretched.log_partition + mean @ (stretched.linear + 0.5 * shift)
    return TruncatedGaussian(stretched.precision, linear, log_partition)

"""The mixture fitted to one sample: theta, c, their standard errors, and whose each value is.

Everything is computed in units of sigma_1, in which the known component's standard deviation is 1.
Source: Rhodes and Gutmann (2019), Section 4.2.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from vnce_engine.black_box.overlap import Overlap
from vnce_engine.data.observations import MIN_ROWS, Observations
from vnce_engine.experiments.mixture import climbs
from vnce_engine.experiments.mixture.climbs import Climb, OnIteration
from vnce_engine.experiments.mixture.data import MixtureData
from vnce_engine.experiments.mixture.estimation import LOCAL_GAP
from vnce_engine.experiments.mixture.methods import NORMALISED, UNNORMALISED, log_partition
from vnce_engine.experiments.mixture.model import true_log_partition
from vnce_engine.experiments.mixture.optimum import DENSITIES, Optimum, ending, warnings_about
from vnce_engine.experiments.mixture.options import Estimator, Form, MixtureOptions
from vnce_engine.experiments.mixture.uncertainty import Neighbourhood
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.checks import as_array, check_seed
from vnce_engine.runtime.progress import FitCancelledError, OnStep
from vnce_engine.runtime.reports import FitStatus, FitStep, FitWarning

# theta's starting values: log-uniform between these multiples of the data's root mean square.
_LOWEST_START, _HIGHEST_START = 0.1, 10.0
# Values of data and noise, times starts, that are worked on at a time: some hundred megabytes.
_VALUES_AT_A_TIME = 2_000_000
_BFGS_ITERATIONS, _EM_STEPS = 200, 500
# Nobody knows how many iterations there will be: after so many, half of the work counts as done.
_USUAL_ITERATIONS = 20


@dataclass(frozen=True)
class MixtureStart:
    """Where one start has led."""

    theta: float
    log_partition: float | None
    objective: float
    is_best: bool
    """Whether the objective is within `LOCAL_GAP` of the best."""


@dataclass(frozen=True)
class MixtureFit:
    """Estimates, in the units of the data."""

    theta: float
    theta_se: float | None
    """Standard error; None where the estimate is no maximum."""
    log_partition: float | None
    """c; None for the normalised form, which has none."""
    log_partition_se: float | None
    known_weight: float
    """Weight of the component of sigma_1; the other one's is the rest."""
    responsibilities: NDArray[np.float64]
    """(n,): the probability that a value is of the component of sigma_1."""
    status: FitStatus
    message: str
    objective_path: tuple[float, ...]
    """The objective after each iteration of the kept start, nats a value; of maximum likelihood the
    log likelihood in the units of the data."""
    gradient_norm: float
    starts: tuple[MixtureStart, ...]
    noise_sigma: float | None
    """The noise's standard deviation; None without noise."""
    overlap: Overlap | None
    """How well noise is told from data; None without noise."""
    warnings: tuple[FitWarning, ...]

    @property
    def num_best(self) -> int:
        """Starts that reached the best optimum."""
        return sum(start.is_best for start in self.starts)


def fit_mixture(
    x: ArrayLike,
    options: MixtureOptions,
    seed: int,
    on_step: OnStep | None = None,
    checkpoint: Checkpoint | None = None,
) -> MixtureFit:
    """Fit the mixture to x (n,), finite and about zero, from `options.num_starts` starts.

    The noise is N(0, s²), s the root mean square of x times `noise_scale`. Of the starts the one
    whose objective ends highest is kept. With `checkpoint=Checkpoint.load(stored)`, `stored` a
    step's `step.checkpoint.dump()` of an interrupted fit of the same x, options and seed, it goes
    on from there.

    Raises `ValueError` for x that does not fit or another fit's checkpoint, and `FitCancelledError`
    where `on_step`, called after every iteration, returns True.
    """
    check_seed("seed", seed)
    sample = _checked(x, options)
    checkpoint = checkpoint or Checkpoint()
    checkpoint.begin_fit(Observations.from_array(sample[:, np.newaxis]).name_of_fit(options, seed))
    generator = torch.Generator().manual_seed(seed)
    scaled = torch.as_tensor(sample / options.sigma_1).unsqueeze(0)
    data = _with_noise(scaled, options, generator)
    starts = _starts(scaled, options.num_starts, generator)
    climb = _climb(data, starts, options, on_step, checkpoint)
    return _present(sample, data, climb, options)


def _checked(x: ArrayLike, options: MixtureOptions) -> NDArray[np.float64]:
    sample = as_array("x", x)
    if sample.ndim != 1 or len(sample) < MIN_ROWS or not np.isfinite(sample).all():
        raise ValueError(
            f"`x` must be a vector of at least {MIN_ROWS} finite numbers, got shape {sample.shape}"
            f", {int((~np.isfinite(sample)).sum())} of them not finite"
        )
    if (sample == sample[0]).all():
        raise ValueError(f"`x` must hold different values, got {sample[0]} alone")
    is_likelihood = options.estimator is Estimator.MLE and options.form is Form.NORMALISED
    if is_likelihood and (num_zeros := int((sample == 0).sum())):
        raise ValueError(
            f"`x` has {num_zeros} exact zeros, at which the likelihood of the normalised mixture "
            "grows without bound as theta shrinks"
        )
    return sample


def _with_noise(x: Tensor, options: MixtureOptions, generator: torch.Generator) -> MixtureData:
    scale = options.noise_scale * _root_mean_square(x)
    has_noise = options.estimator is not Estimator.MLE
    num_noise = options.noise_ratio * x.shape[1] if has_noise else 0
    normals = torch.randn(1, num_noise, dtype=x.dtype, generator=generator)
    return MixtureData(x, scale * normals, scale.unsqueeze(0))


def _root_mean_square(x: Tensor) -> Tensor:
    largest = x.abs().max()  # whose square alone might overflow
    return largest * (x / largest).square().mean().sqrt()


def _starts(x: Tensor, num: int, generator: torch.Generator) -> Tensor:
    """Return (num, 5): theta about the data's spread, c near its true value, q's weights normal."""
    uniforms = torch.rand(num, 2, dtype=x.dtype, generator=generator)
    weights = torch.randn(num, 3, dtype=x.dtype, generator=generator)
    multiple = _LOWEST_START * (_HIGHEST_START / _LOWEST_START) ** uniforms[:, 0]
    theta = _root_mean_square(x) * multiple
    c = true_log_partition(theta) + 2 * uniforms[:, 1] - 1
    return torch.cat(
        [torch.stack([theta.log(), c], dim=1), weights * weights.new_tensor([1.0, 1.0, 0.1])], dim=1
    )


def _climb(
    data: MixtureData,
    starts: Tensor,
    options: MixtureOptions,
    on_step: OnStep | None,
    checkpoint: Checkpoint,
) -> Climb:
    """Climb from all starts, as many at a time as memory is meant for."""
    size = max(1, _VALUES_AT_A_TIME // (data.x.shape[1] + data.y.shape[1]))
    groups = starts.split(size)
    done: list[Climb] = []
    num_iterations = 0

    def on_iteration(values: Tensor) -> None:
        nonlocal num_iterations
        num_iterations += 1
        within = num_iterations / (num_iterations + _USUAL_ITERATIONS)
        fraction = (len(done) + within) / len(groups)
        best = _or_none(_objective(float(values.max()), options))
        step = FitStep("fit", fraction, num_iterations, best, checkpoint)
        if on_step is not None and on_step(step):
            raise FitCancelledError

    def climb(group: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found = _climb_group(data, group, options, on_iteration, checkpoint)
        return found.parameters, found.values, found.paths

    for group in groups:
        num_iterations = 0
        done.append(Climb(*checkpoint.once(partial(climb, group))))
    return climbs.joined(done)


def _climb_group(
    data: MixtureData,
    starts: Tensor,
    options: MixtureOptions,
    on_iteration: OnIteration,
    checkpoint: Checkpoint,
) -> Climb:
    """Return where the starts lead, in the model's own parameters: log theta and, if free, c."""
    is_free = options.form is Form.UNNORMALISED
    if options.estimator is Estimator.EXACT_EM:
        density = DENSITIES[options.form]
        limit = options.max_iterations or _EM_STEPS
        own = starts[:, : 2 if is_free else 1]
        return climbs.climb_by_exact_em(density, data, own, limit, on_iteration, checkpoint)
    method = (UNNORMALISED if is_free else NORMALISED)[options.estimator.upper()]
    limit = options.max_iterations or _BFGS_ITERATIONS
    climb = climbs.climb_together(method, data, starts, limit, on_iteration)
    own = climb.parameters[:, :1]
    if is_free:
        own = torch.cat([own, log_partition(method, climb.parameters).unsqueeze(1)], dim=1)
    return replace(climb, parameters=own)


def _present(
    sample: NDArray[np.float64], data: MixtureData, climb: Climb, options: MixtureOptions
) -> MixtureFit:
    """Return the best of the climbs in the units of the data."""
    values = climb.values.nan_to_num(nan=-math.inf)
    kept = int(values.argmax())
    is_best = values >= values[kept] - LOCAL_GAP
    num_best, num_starts = int(is_best.sum()), len(values)
    optimum = Optimum(climb.parameters[kept], options, data)
    near = optimum.neighbourhood() if optimum.is_finite and values[kept].isfinite() else None
    overlap = None if near is None else optimum.overlap()
    status, message = ending(near, num_best, num_starts)
    theta_se, c_se = _standard_errors(optimum, near)
    return MixtureFit(
        theta=options.sigma_1 * optimum.theta,
        theta_se=theta_se,
        log_partition=_log_partition(optimum.parameters, options),
        log_partition_se=c_se,
        known_weight=optimum.known_weight,
        responsibilities=optimum.responsibilities(),
        status=status,
        message=message,
        objective_path=tuple(_objective(v, options) for v in _path(climb.paths[:, kept])),
        gradient_norm=math.nan if near is None else float(near.gradient.norm()),
        starts=tuple(
            MixtureStart(
                theta=options.sigma_1 * float(parameters[0].exp()),
                log_partition=_log_partition(parameters, options),
                objective=_objective(float(value), options),
                is_best=bool(best),
            )
            for parameters, value, best in zip(climb.parameters, values, is_best, strict=True)
        ),
        noise_sigma=options.sigma_1 * float(data.noise_scale) if data.nu > 0 else None,
        overlap=overlap,
        warnings=warnings_about(sample, overlap, num_best, num_starts),
    )


def _standard_errors(
    optimum: Optimum, near: Neighbourhood | None
) -> tuple[float | None, float | None]:
    """Return those of theta and c."""
    if near is None or near.standard_errors is None:
        return None, None
    of_log_theta = float(near.standard_errors[0])
    of_theta = optimum.options.sigma_1 * optimum.theta * of_log_theta
    if optimum.options.form is Form.NORMALISED:
        return of_theta, None
    if len(near.standard_errors) > 1:
        return of_theta, float(near.standard_errors[1])
    # c = log(theta + 1) + constant
    return of_theta, (1 - optimum.known_weight) * of_log_theta


def _log_partition(parameters: Tensor, options: MixtureOptions) -> float | None:
    """Return c in the units of the data: dx is sigma_1 times as long there."""
    if options.form is Form.NORMALISED:
        return None
    return float(parameters[1]) + math.log(options.sigma_1)


def _objective(value: float, options: MixtureOptions) -> float:
    """Return an objective in the units of the data; those that compare densities have none."""
    is_likelihood = options.estimator is Estimator.MLE
    return value - math.log(options.sigma_1) if is_likelihood else value


def _path(values: Tensor) -> tuple[float, ...]:
    """Return the values up to the last iteration that changed anything."""
    moved = values.diff().nonzero()
    last = int(moved[-1]) + 2 if len(moved) else 1
    return tuple(values[:last].tolist())


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None

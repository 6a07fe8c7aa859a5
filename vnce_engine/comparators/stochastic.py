"""Stochastic gradient ascent by sampled moments: Monte Carlo likelihood, contrastive divergence.

A step moves K and h along the moments of a minibatch, its missing cells drawn, less moments of the
model, and is halved until K is positive definite, which Gibbs sampling needs. What the methods
differ in is where the samples come from.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from vnce_engine.comparators.chains import CompletedTable, ModelChains
from vnce_engine.comparators.exponential import Moments, Parameters, gradient
from vnce_engine.comparators.result import ComparatorFit, ScaledTable
from vnce_engine.distributions.truncated_normal import match_moments
from vnce_engine.runtime.checkpoint import Saved
from vnce_engine.runtime.progress import FitCancelledError, Progress
from vnce_engine.runtime.reports import FitStatus, FitWarning

FloatArray = NDArray[np.float64]

BATCH_SIZE = 100
_MAX_HALVINGS = 40
# Epochs after which the step size has halved.
_HALF_LIFE = 10
# Share of steps cut short beyond which the estimates say more about the cuts than about the data.
_CUT_SHARE = 0.02
# K or h beyond this, columns scaled to mean square 1: conditionals would be points, their moments
# rounding errors, and no later step could lead back.
_LARGEST = 1e6
# Sweeps of new chains before a fit that was interrupted goes on: those to few rows are short.
_BURN_IN = 20


class Sampler(Protocol):
    """Where the two halves of a gradient come from."""

    def sample(self, rows: NDArray[np.intp], theta: Parameters) -> tuple[Moments, Moments]:
        """Return the moments of the given rows (b,) of the table, completed, and of the model."""

    def burn_in(self, theta: Parameters) -> None:
        """Bring chains that have just begun to where long ones are, for a fit that goes on."""


@dataclass(frozen=True)
class StochasticOptions:
    """How steps are taken."""

    step_size: float
    """Of the first step; it falls as 1 / (1 + epoch / 10)."""
    num_epochs: int


class FreshChains:
    """New chains for every step, burnt in: Monte Carlo likelihood as in the paper's appendix.

    Each row of a batch has one chain of its missing cells, which gives `num_draws` samples; the
    model gives as many samples for each row.
    """

    def __init__(self, table: ScaledTable, *, num_draws: int, burn_in: int, thinning: int) -> None:
        self._num_draws, self._burn_in, self._thinning = num_draws, burn_in, thinning
        self._rng = table.rng
        self._table = CompletedTable(table.X, table.rng)

    def sample(self, rows: NDArray[np.intp], theta: Parameters) -> tuple[Moments, Moments]:
        """Return the moments of the completed batch and of the model."""
        batch = self._table.part(rows)
        model = ModelChains(np.zeros((len(theta.linear), len(rows))), self._rng)
        data = [batch.moments()] if batch.is_complete else self._draws(batch, theta)
        return Moments.mean(data), Moments.mean(self._draws(model, theta))

    def burn_in(self, theta: Parameters) -> None:
        """Do nothing: no chain outlives its step."""

    def _draws(self, chains: CompletedTable | ModelChains, theta: Parameters) -> list[Moments]:
        chains.sweep(theta, self._burn_in)
        moments = []
        for _ in range(self._num_draws):
            chains.sweep(theta, self._thinning)
            moments.append(chains.moments())
        return moments


class ChainsFromData:
    """Contrastive divergence: the model's chains start at the completed rows of the batch.

    Source: Hinton (2002).
    """

    def __init__(self, table: ScaledTable, num_sweeps: int) -> None:
        self._table = CompletedTable(table.X, table.rng)
        self._num_sweeps, self._rng = num_sweeps, table.rng

    def sample(self, rows: NDArray[np.intp], theta: Parameters) -> tuple[Moments, Moments]:
        """Return the moments of the completed batch, and of it after `num_sweeps` sweeps."""
        batch = self._table.part(rows)
        batch.sweep(theta, self._num_sweeps)
        self._table.put(rows, batch)
        model = ModelChains(batch.state.copy(), self._rng)
        model.sweep(theta, self._num_sweeps)
        return batch.moments(), model.moments()

    def burn_in(self, theta: Parameters) -> None:
        """Draw the missing cells, again and again."""
        self._table.sweep(theta, _BURN_IN)


class PersistentChains:
    """Persistent contrastive divergence: the model's chains run on from batch to batch.

    Source: Tieleman (2008), after Younes (1999).
    """

    def __init__(self, table: ScaledTable, num_sweeps: int) -> None:
        self._table = CompletedTable(table.X, table.rng)
        self._num_sweeps = num_sweeps
        first = self._table.state[:, table.rng.integers(len(table.X), size=BATCH_SIZE)]
        self._model = ModelChains(first, table.rng)

    def sample(self, rows: NDArray[np.intp], theta: Parameters) -> tuple[Moments, Moments]:
        """Return the moments of the completed batch and of the chains, `num_sweeps` later."""
        batch = self._table.part(rows)
        batch.sweep(theta, self._num_sweeps)
        self._table.put(rows, batch)
        self._model.sweep(theta, self._num_sweeps)
        return batch.moments(), self._model.moments()

    def burn_in(self, theta: Parameters) -> None:
        """Draw the missing cells and the model's states, again and again."""
        self._table.sweep(theta, _BURN_IN)
        self._model.sweep(theta, _BURN_IN)


def fit_by_stochastic_gradient(
    table: ScaledTable, sampler: Sampler, options: StochasticOptions, progress: Progress
) -> ComparatorFit:
    """Return the estimate after all epochs, columns at mean square 1.

    `objective_path` has the squared length of the gradient in each step, noise included. Where a
    step leads nowhere, the fit ends with status `NON_FINITE` and the estimate before it.
    """
    ascent = _Ascent(table, sampler, options)
    status, message = FitStatus.MAX_ITERATIONS, ""
    stage = progress.checkpoint.stage()
    if stage.saved is not None:
        ascent.go_on_from(stage.saved)
    path = ascent.path
    try:
        while len(path) < ascent.num_steps:
            if not ascent.step():
                status, message = FitStatus.NON_FINITE, _ran_away(path)
                break
            stage.save(ascent.to_save())
            progress.report(len(path) / ascent.num_steps, len(path), None)
    except FitCancelledError:
        status = FitStatus.CANCELLED
    return ComparatorFit(
        theta=ascent.theta,
        status=status,
        objective_path=tuple(path),
        objective_name="squared gradient",
        gradient_norm=math.sqrt(path[-1]) if path else math.nan,
        message=message,
        warnings=_cut_warnings(ascent.num_cut, len(path)),
    )


class _Ascent:
    """The moving state of a fit: parameters, chains, and the order of the present epoch's rows."""

    def __init__(self, table: ScaledTable, sampler: Sampler, options: StochasticOptions) -> None:
        self._units = _Units.of(table)
        self.theta = _start(table)
        self.path: list[float] = []
        self.num_cut = 0
        self._table, self._sampler, self._options = table, sampler, options
        self._num_batches = math.ceil(len(table.X) / BATCH_SIZE)
        self.num_steps = options.num_epochs * self._num_batches
        self._deal(np.arange(len(table.X)))

    def _deal(self, order: NDArray[np.intp]) -> None:
        self._order, self._batches = order, np.array_split(order, self._num_batches)

    def step(self) -> bool:
        """Take a step; return False, and stay, where it would lead too far."""
        epoch, batch = divmod(len(self.path), self._num_batches)
        if batch == 0:
            self._deal(self._table.rng.permutation(len(self._order)))
        moments = self._sampler.sample(self._batches[batch], self.theta)
        slope = _slope(self._table, *moments, self.theta)
        size = self._options.step_size / (1 + epoch / _HALF_LIFE)
        direction = self._units.direction(slope)
        if _leads_too_far(self.theta.plus(direction, size)):
            return False
        self.theta, num_halvings = _definite(self.theta, direction, size)
        self.num_cut += num_halvings > 0
        self.path.append(float(np.sum(slope.precision**2) + np.sum(slope.linear**2)))
        return True

    def to_save(self) -> Saved:
        """Return the estimate, how far the fit has come, and where its generator is."""
        generator = self._table.rng.bit_generator.state
        return self.theta.to_tensors(), tuple(self.path), self.num_cut, generator

    def go_on_from(self, saved: Saved) -> None:
        """Go on from an interrupted fit's estimate, with chains of its own and rows dealt anew."""
        theta, path, self.num_cut, self._table.rng.bit_generator.state = saved
        self.theta, self.path = Parameters.from_tensors(theta), list(path)
        self._deal(self._table.rng.permutation(len(self._order)))
        self._sampler.burn_in(self.theta)


@dataclass(frozen=True)
class _Units:
    """What a step measures rows from, and in.

    Where h is estimated, these are the columns' means and standard deviations: of columns far above
    zero K is large, and K and h hang together so closely that in other units no step size serves.
    """

    centre: FloatArray
    """(d,)"""
    spread: FloatArray
    """(d,)"""

    @classmethod
    def of(cls, table: ScaledTable) -> "_Units":
        d = table.X.shape[1]
        if not table.has_linear:
            return cls(np.zeros(d), np.ones(d))
        return cls(np.nanmean(table.X, axis=0), np.nanstd(table.X, axis=0))

    def direction(self, slope: Parameters) -> Parameters:
        """Return the step in K and h that the slope of K and h asks for in these units."""
        pull = np.outer(self.centre, slope.linear)
        variance = self.spread**2
        precision = (slope.precision + 0.5 * (pull + pull.T)) / np.outer(variance, variance)
        return Parameters(precision, slope.linear / variance).seen_from(-self.centre)


def _start(table: ScaledTable) -> Parameters:
    """Return independent columns, half-normal ones unless h is estimated."""
    if not table.has_linear:
        return Parameters.independent(np.nanmean(table.X**2, axis=0))
    moments = (torch.from_numpy(f(table.X, axis=0)) for f in (np.nanmean, np.nanvar))
    mu, sigma = (part.numpy() for part in match_moments(*moments))
    return Parameters(np.diag(sigma**-2), mu / sigma**2)


def _slope(table: ScaledTable, data: Moments, model: Moments, theta: Parameters) -> Parameters:
    slope = gradient(data, model, has_linear=table.has_linear)
    penalty = table.penalty.gradient(torch.from_numpy(theta.precision)).numpy()
    return Parameters(slope.precision - penalty, slope.linear)


def _leads_too_far(theta: Parameters) -> bool:
    return not theta.is_finite() or theta.largest() > _LARGEST


def _definite(theta: Parameters, slope: Parameters, size: float) -> tuple[Parameters, int]:
    """Return where a step leads, halved until K is definite, and how often it was."""
    for num_halvings in range(_MAX_HALVINGS):
        moved = theta.plus(slope, size * 0.5**num_halvings)
        if moved.is_definite():
            return moved, num_halvings
    return theta, _MAX_HALVINGS


def _cut_warnings(num_cut: int, num_steps: int) -> tuple[FitWarning, ...]:
    if num_cut <= _CUT_SHARE * num_steps:
        return ()
    return (
        FitWarning(
            "step-size-too-large",
            f"{num_cut} of {num_steps} steps would have left the positive definite matrices and "
            "were cut short: the estimates are where that stopped them.",
        ),
    )


def _ran_away(path: list[float]) -> str:
    last = f"{path[-1]:.6g}" if path else "none"
    return (
        f"The estimates ran away in iteration {len(path) + 1} (last finite squared gradient: "
        f"{last}); those before it are returned."
    )

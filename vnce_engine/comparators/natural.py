"""Maximum likelihood by Monte Carlo and natural gradients: no step size is chosen.

The gradient of the log likelihood is the mean of the statistics over completed rows less that over
the model (Rhodes and Gutmann, 2019, Eq. 3), both from persistent Gibbs chains (Younes, 1999). A
step solves with the statistics' covariance under the model, the Fisher information of complete data
(Amari, 1998): with missing cells, the scoring step inside EM. Steps stay within a trust region and
keep K positive definite, which Gibbs sampling needs. Where the gradient is all noise the iterates
are averaged, until what Monte Carlo adds to their variance is a small share of it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from vnce_engine.comparators.chains import CompletedTable, ModelChains
from vnce_engine.comparators.exponential import Coordinates, Parameters, gradient
from vnce_engine.comparators.result import ComparatorFit, ScaledTable
from vnce_engine.progress import FitCancelledError, Progress
from vnce_engine.result import FitStatus

FloatArray = NDArray[np.float64]

# Most log likelihood, in nats a row to second order, that one step may seek to gain.
_TRUST = 0.5
_MAX_HALVINGS = 40
# Added to the Fisher information's diagonal, as a share of it, where chains are few.
_RIDGE = 1e-3
_BURN_IN = 20
_SWEEPS = 2
# Chains: as many as rows, within these bounds. The covariance needs no more than the second.
_FEWEST_CHAINS, _MOST_CHAINS = 2_000, 20_000
_FISHER_CHAINS = 4_000
# Rows, and chains, that suffice until the gradient is all noise; then all rows are used.
_FIRST_ROWS = 5_000
# Steps compared with as many before them to see whether the gradient still falls.
_WINDOW = 8
_MIN_AVERAGED = 30


@dataclass(frozen=True)
class NaturalOptions:
    """How long a fit is."""

    max_steps: int
    tolerance: float
    """Share of the sampling variance that Monte Carlo may add to it."""


def fit_by_natural_gradient(
    table: ScaledTable, options: NaturalOptions, progress: Progress
) -> ComparatorFit:
    """Return the penalised maximum-likelihood estimate, columns at mean square 1.

    `objective_path` has half the squared length of the gradient in the metric of the Fisher
    information: the log likelihood, nats a row to second order, that is left to gain, and noise.
    """
    ascent = _Ascent(table, Parameters.independent(np.nanmean(table.X**2, axis=0)))
    path: list[float] = []
    status, message = FitStatus.MAX_ITERATIONS, ""
    try:
        for gain in ascent.run(options):
            path.append(gain)
            progress.report(len(path) / options.max_steps, len(path), None)
            if not ascent.is_finite:
                status, message = FitStatus.NON_FINITE, _non_finite(path)
                break
        else:
            if ascent.monte_carlo_share() <= options.tolerance:
                status = FitStatus.CONVERGED
    except FitCancelledError:
        status = FitStatus.CANCELLED
    finite = [gain for gain in path if math.isfinite(gain)]
    theta = ascent.estimate()
    return ComparatorFit(
        precision=theta.precision,
        linear=theta.linear,
        status=status,
        objective_path=tuple(finite),
        gradient_norm=ascent.gradient_norm,
        num_draws=ascent.num_averaged,
        message=message,
    )


def _non_finite(path: list[float]) -> str:
    last = next((gain for gain in reversed(path) if math.isfinite(gain)), None)
    return (
        f"The gradient became infinite or undefined in step {len(path)} (last finite gain sought: "
        f"{last}); the last finite estimate is returned. Try a `penalty`."
    )


class _Ascent:
    """The moving state of a fit: chains, parameters, and the average of late iterates."""

    def __init__(self, table: ScaledTable, start: Parameters) -> None:
        self._table = table
        d = table.X.shape[1]
        self._coordinates = Coordinates(d, free_linear=table.free_linear)
        self._theta = start
        self._data = CompletedTable(table.first_rows(_FIRST_ROWS), table.rng)
        self._num_chains = min(max(len(table.X), _FEWEST_CHAINS), _MOST_CHAINS)
        first = min(self._num_chains, _FIRST_ROWS)
        self._model = ModelChains(np.zeros((d, first)), table.rng)
        self._sum = np.zeros(self._coordinates.size)
        self.num_averaged = 0
        self.gradient_norm = math.nan
        self.is_finite = True

    def run(self, options: NaturalOptions) -> Iterator[float]:
        """Yield the gain sought by each step, until the estimate is settled or steps run out."""
        self._model.sweep(self._theta, _BURN_IN)
        self._data.sweep(self._theta, _BURN_IN)
        left = options.max_steps
        for gain in self._settle(left):
            left -= 1
            yield gain
        if self._use_all():
            for gain in self._settle(left):
                left -= 1
                yield gain
        needed = max(_MIN_AVERAGED, math.ceil(self._noise_of_a_step() / options.tolerance))
        for _ in range(min(needed, left)):
            yield self._step()
            self._sum += self._coordinates.write(self._theta)
            self.num_averaged += 1

    def _settle(self, max_steps: int) -> Iterator[float]:
        """Take steps until the gradient is all noise."""
        gains: list[float] = []
        while len(gains) < max_steps and _still_falls(gains):
            gains.append(self._step())
            yield gains[-1]

    def estimate(self) -> Parameters:
        """Return the average of late iterates, or the last iterate before there is one."""
        if not self.num_averaged:
            return self._theta
        return self._coordinates.read(self._sum / self.num_averaged)

    def monte_carlo_share(self) -> float:
        """Return about what share of the sampling variance Monte Carlo has added to it."""
        if not self.num_averaged:
            return math.inf
        return self._noise_of_a_step() / self.num_averaged

    def _noise_of_a_step(self) -> float:
        """Return the variance of one step's statistics in units of that of the n rows' own.

        The chains are as good as n independent rows each; of the rows' own completion, the share of
        pairs with a missing cell is noise at most.
        """
        observed = 1 - float(np.isnan(self._table.X).mean())
        chains_noise = float(len(self._table.X) / self._model.state.shape[1])
        return chains_noise + 1 - observed**2

    def _use_all(self) -> bool:
        """Take all rows and all chains from here on; return whether there are more than before."""
        rng, X, states = self._table.rng, self._table.X, self._model.state
        if self._data.state.shape[1] == len(X):
            return False
        self._data = CompletedTable(X, rng)
        copies = np.tile(states, math.ceil(self._num_chains / states.shape[1]))
        self._model = ModelChains(copies[:, : self._num_chains].copy(), rng)
        return True

    def _step(self) -> float:
        """Take a step; return the gain it seeks, half the gradient's squared natural length."""
        self._model.sweep(self._theta, _SWEEPS)
        if not self._data.is_complete:
            self._data.sweep(self._theta, _SWEEPS if self._is_small() else 1)
        slope = gradient(
            self._data.moments(), self._model.moments(), free_linear=self._table.free_linear
        )
        precision = torch.from_numpy(self._theta.precision)
        slope = Parameters(
            slope.precision - self._table.penalty.gradient(precision).numpy(), slope.linear
        )
        vector = self._coordinates.derivative(slope)
        self.is_finite = bool(np.isfinite(vector).all())
        if not self.is_finite:
            return math.nan
        direction = np.asarray(
            np.linalg.solve(self._information(precision), vector), dtype=np.float64
        )
        gain = 0.5 * float(vector @ direction)
        self.gradient_norm = float(np.linalg.norm(vector))
        size = 1.0 if gain <= _TRUST else math.sqrt(_TRUST / gain)
        self._move(self._coordinates.read(direction), size)
        return gain

    def _is_small(self) -> bool:
        return bool(self._data.state.shape[1] <= _FIRST_ROWS)

    def _information(self, precision: torch.Tensor) -> FloatArray:
        """Return the penalised Fisher information of complete rows, from the chains."""
        fisher = self._coordinates.fisher(self._model.state[:, :_FISHER_CHAINS])
        weights = self._table.penalty.curvature(precision).diagonal().numpy()
        curvature = self._coordinates.derivative(Parameters(weights, np.zeros(len(weights))))
        fisher[np.diag_indices_from(fisher)] *= 1 + _RIDGE
        fisher[np.diag_indices_from(fisher)] += curvature
        return fisher

    def _move(self, direction: Parameters, size: float) -> None:
        for _ in range(_MAX_HALVINGS):
            moved = self._theta.plus(direction, size)
            if moved.is_definite():
                self._theta = moved
                return
            size *= 0.5


def _still_falls(gains: list[float]) -> bool:
    """Return whether the last gains are below those before them: not all noise yet."""
    if len(gains) < 2 * _WINDOW:
        return True
    recent, before = gains[-_WINDOW:], gains[-2 * _WINDOW : -_WINDOW]
    return float(np.median(recent)) < 0.9 * float(np.median(before))

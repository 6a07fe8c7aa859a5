"""Maximum likelihood by Monte Carlo and natural gradients: no step size is chosen.

The gradient of the log likelihood is the mean of the statistics over completed rows less that over
the model (Rhodes and Gutmann, 2019, Eq. 3), both from persistent Gibbs chains (Younes, 1999), the
latter with each coordinate averaged out given the others (`ModelChains.expected_moments`). A step
solves with the statistics' covariance under the model, the Fisher information of complete data
(Amari, 1998): with missing cells, the scoring step inside EM. Steps stay within a trust region and
keep K positive definite, so that chains mix. Where the gradient is all noise the iterates are
averaged, until what Monte Carlo adds to their variance is a small share of it.

Where h is free, rows are measured from the columns' means: steps in K then leave the means alone.
From zero, columns many spreads away make x and xxᵀ nearly the same statistic, and no step that the
system's solution allows for would get anywhere.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from vnce_engine.comparators.chains import CompletedTable, ModelChains
from vnce_engine.comparators.exponential import Coordinates, Parameters, gradient
from vnce_engine.comparators.result import ComparatorFit, ScaledTable
from vnce_engine.runtime.checkpoint import Saved, Stage
from vnce_engine.runtime.progress import FitCancelledError, Progress
from vnce_engine.runtime.reports import FitStatus, FitWarning

FloatArray = NDArray[np.float64]

# Most log likelihood, in nats a row to second order, that one step may seek to gain.
_TRUST = 0.5
_MAX_HALVINGS = 40
# A step halved more often than this is held at the limit; where most are, iterates agree with each
# other because they cannot move.
_MOST_HALVINGS_OF_A_FREE_STEP = 3
# Added to the Fisher information's diagonal, as a share of it, where chains are few.
_RIDGE = 1e-3
_BURN_IN = 20
# Between steps to few rows; those to many are short, and the chains follow them by one sweep.
_SWEEPS = 2
# Conjugate gradients end at this share of the gradient, as the next step's noise is larger.
_CG_TOLERANCE = 0.05
_CG_ITERATIONS = 50
# Chains: this many for each parameter, so that their covariance can be relied upon, and as many as
# rows, within bounds.
_CHAINS_PER_PARAMETER = 10
_FEWEST_CHAINS, _MOST_CHAINS = 2_000, 30_000
# Rows that suffice until the gradient is all noise; then all rows are used.
_FIRST_ROWS = 5_000
# Steps compared with as many before them to see whether the gradient still falls.
_WINDOW = 8
# Steps between two looks at whether enough have been averaged, and half of the fewest averaged.
_CHECKED_EVERY = 10
_SMALLEST_HALF = 10
# Where cells are missing a complete table's information asks for steps that are too short; up to
# twice as long a step still converges in every direction.
_OVER_RELAXATION = 1.5

_AT_THE_LIMIT = (
    "Steps ended where K would not have stayed safely positive definite, so that no maximum was "
    "reached."
)


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
    ascent = _Ascent(table, _start(table))
    stage = progress.checkpoint.stage()
    if stage.saved is not None:
        ascent.go_on_from(stage.saved)
    status, message = FitStatus.MAX_ITERATIONS, ""
    try:
        ascent.climb(options, progress, stage)
        if not ascent.is_finite:
            status, message = FitStatus.NON_FINITE, _non_finite(ascent.path)
        elif ascent.is_at_the_limit:
            message = _AT_THE_LIMIT
        elif ascent.monte_carlo_share() <= options.tolerance:
            status = FitStatus.CONVERGED
    except FitCancelledError:
        status = FitStatus.CANCELLED
    finite = [gain for gain in ascent.path if math.isfinite(gain)]
    return ComparatorFit(
        theta=ascent.estimate(),
        status=status,
        objective_path=tuple(finite),
        objective_name="half squared gradient",
        gradient_norm=ascent.gradient_norm,
        num_draws=ascent.num_averaged,
        message=message,
        warnings=_limit_warnings(ascent),
    )


def _start(table: ScaledTable) -> Parameters:
    """Return independent columns, about as wide as those of the table, and about where they are."""
    if not table.has_linear:
        return Parameters.independent(np.nanmean(table.X**2, axis=0))
    precision = 1 / np.nanvar(table.X, axis=0)
    return Parameters(np.diag(precision), precision * np.nanmean(table.X, axis=0))


def _limit_warnings(ascent: "_Ascent") -> tuple[FitWarning, ...]:
    if not ascent.is_at_the_limit:
        return ()
    return (
        FitWarning(
            "definiteness-limit",
            f"{ascent.num_held} of {len(ascent.path)} steps were cut short, or not taken, to keep "
            "K safely positive definite. The likelihood may be higher where K is indefinite; the "
            "estimates are where the steps ended.",
        ),
    )


def _non_finite(path: list[float]) -> str:
    last = next((gain for gain in reversed(path) if math.isfinite(gain)), None)
    return (
        f"The gradient became infinite or undefined in step {len(path)} (last finite gain sought: "
        f"{last}); the last finite estimate is returned."
    )


class _Ascent:
    """The moving state of a fit: chains, parameters, and the average of late iterates."""

    def __init__(self, table: ScaledTable, start: Parameters) -> None:
        self._table = table
        d = table.X.shape[1]
        self._coordinates = Coordinates(d, has_linear=table.has_linear)
        # What K and h are looked for as: those of rows measured from here.
        self._centre = np.nanmean(table.X, axis=0) if table.has_linear else np.zeros(d)
        self._theta = start
        self._data = CompletedTable(table.first_rows(_FIRST_ROWS), table.rng)
        first = _CHAINS_PER_PARAMETER * self._coordinates.size
        first = min(max(first, min(len(table.X), _FIRST_ROWS), _FEWEST_CHAINS), _MOST_CHAINS)
        self._num_first = first
        self._num_chains = max(first, min(len(table.X), _MOST_CHAINS))
        self._model = ModelChains(np.zeros((d, first)), table.rng)
        self._num_burnt = 0
        # Of the path: where the gradient began to fall to the level of its noise.
        self._settles_from = 0
        self._has_settled = False
        # Iterates since the gradient was first noise, and the later half of them.
        self._num_iterates = 0
        self._late: list[FloatArray] = []
        self.path: list[float] = []
        self.gradient_norm = math.nan
        self.is_finite = True
        self.num_held = 0

    def climb(self, options: NaturalOptions, progress: Progress, stage: Stage) -> None:
        """Take steps until the estimate is settled, steps run out or the gradient is no number."""
        while self._num_burnt < 2 * _BURN_IN:
            chains = self._model if self._num_burnt < _BURN_IN else self._data
            chains.sweep(self._theta)
            self._num_burnt += 1
            progress.report(0.0, 0, None)
        while self.is_finite and len(self.path) < options.max_steps:
            self._look_whether_settled()
            if self._is_to_be_checked() and self.monte_carlo_share() <= options.tolerance:
                break
            self.path.append(self._step())
            if self._settles_from and self.is_finite:
                self._average()
            stage.save(self._to_save())
            progress.report(len(self.path) / options.max_steps, len(self.path), None)

    def _look_whether_settled(self) -> None:
        """See whether the gradient is all noise: then all rows are taken.

        Averages begin there, where the optimum is near, and can be the estimate once the gradient
        of all rows is noise.
        """
        if not self._has_settled and not _still_falls(self.path[self._settles_from :]):
            self._has_settled = not self._use_all()
            self._settles_from = len(self.path)

    def _is_to_be_checked(self) -> bool:
        return self._has_settled and self._num_iterates % _CHECKED_EVERY == 0

    def _average(self) -> None:
        """Add the present iterate, and drop what is not of the later half any more."""
        self._num_iterates += 1
        self._late.append(self._coordinates.write(self._theta.seen_from(self._centre)))
        del self._late[: len(self._late) - self.num_averaged]

    @property
    def is_at_the_limit(self) -> bool:
        """Whether hardly anything of most steps could be taken, as K stays definite."""
        return 2 * self.num_held > len(self.path)

    @property
    def num_averaged(self) -> int:
        """The number of iterates that the estimate is the average of."""
        return self._num_iterates - self._num_iterates // 2

    def estimate(self) -> Parameters:
        """Return the average of the later half of the iterates since the gradient is noise."""
        if not self._late:
            return self._theta
        return self._coordinates.read(np.mean(self._late, axis=0)).seen_from(-self._centre)

    def _to_save(self) -> Saved:
        """Return the iterates that count, how far the fit has come, and where its generator is."""
        return (
            self._theta.to_tensors(),
            torch.from_numpy(np.array(self._late)),
            (tuple(self.path), self.gradient_norm, self.is_finite, self.num_held),
            (self._settles_from, self._has_settled, self._num_iterates),
            self._table.rng.bit_generator.state,
        )

    def go_on_from(self, saved: Saved) -> None:
        """Go on from an interrupted fit's iterates, with chains that are burnt in anew."""
        theta, late, so_far, settled, self._table.rng.bit_generator.state = saved
        self._theta, self._late = Parameters.from_tensors(theta), list(late.numpy())
        path, self.gradient_norm, self.is_finite, self.num_held = so_far
        self.path = list(path)
        self._settles_from, self._has_settled, self._num_iterates = settled
        if self._settles_from:
            self._use_all()

    def monte_carlo_share(self) -> float:
        """Return the estimate's variance by Monte Carlo as a share of that by sampling, averaged.

        The former from the two halves of what is averaged, so that it tells a drift as well as
        noise; the latter, at least, as that of each parameter alone from the pairs observed.
        """
        half = self.num_averaged // 2
        if half < _SMALLEST_HALF:
            return math.inf
        late = np.array(self._late[-2 * half :])
        squared_error = (0.5 * (late[:half].mean(axis=0) - late[half:].mean(axis=0))) ** 2
        observed = 1 - float(np.isnan(self._table.X).mean())
        information = len(self._table.X) * observed**2
        variances = self._coordinates.fisher_diagonal(self._centred(self._model.state))
        return float(np.mean(squared_error * variances) * information)

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
        num_sweeps = _SWEEPS if self._is_small() else 1
        self._model.sweep(self._theta, num_sweeps)
        if not self._data.is_complete:
            self._data.sweep(self._theta, num_sweeps)
        centre = self._centre[:, np.newaxis]
        slope = gradient(
            self._data.moments(centre),
            self._model.expected_moments(self._theta, centre),
            has_linear=self._table.has_linear,
        )
        precision = torch.from_numpy(self._theta.precision)
        slope = Parameters(
            slope.precision - self._table.penalty.gradient(precision).numpy(), slope.linear
        )
        vector = self._coordinates.derivative(slope)
        self.is_finite = bool(np.isfinite(vector).all())
        if not self.is_finite:
            return math.nan
        direction = self._direction(vector, precision)
        gain = 0.5 * float(vector @ direction)
        self.gradient_norm = float(np.linalg.norm(vector))
        size = 1.0 if self._data.is_complete else _OVER_RELAXATION
        size *= min(1.0, math.sqrt(_TRUST / gain)) if gain > 0 else 1.0
        self._move(self._coordinates.read(direction).seen_from(-self._centre), size)
        return gain

    def _centred(self, states: FloatArray) -> FloatArray:
        """Return states (d, number of chains) measured from the centre."""
        return states - self._centre[:, np.newaxis]

    def _is_small(self) -> bool:
        return bool(self._data.state.shape[1] <= _FIRST_ROWS)

    def _direction(self, vector: FloatArray, precision: torch.Tensor) -> FloatArray:
        """Solve with the penalised Fisher information of complete rows, by conjugate gradients."""
        state = self._centred(self._model.state[:, : self._num_first])
        coordinates = self._coordinates
        weights = self._table.penalty.curvature(precision).diagonal().numpy()
        variances = coordinates.fisher_diagonal(state)
        extra = _RIDGE * variances + coordinates.derivative(
            Parameters(weights, np.zeros(len(weights)))
        )
        shape = (len(vector), len(vector))
        information = LinearOperator(
            shape, lambda v: coordinates.fisher_product(state, v.ravel()) + extra * v.ravel()
        )
        preconditioner = LinearOperator(shape, lambda v: v.ravel() / (variances + extra))
        direction, _ = cg(
            information, vector, rtol=_CG_TOLERANCE, maxiter=_CG_ITERATIONS, M=preconditioner
        )
        return np.asarray(direction, dtype=np.float64)

    def _move(self, direction: Parameters, size: float) -> None:
        """Take the step, as short as K needs to stay definite; count it if it is hardly any."""
        num_halvings = 0
        while num_halvings < _MAX_HALVINGS:
            moved = self._theta.plus(direction, size)
            if moved.is_definite():
                self._theta = moved
                break
            size *= 0.5
            num_halvings += 1
        self.num_held += num_halvings > _MOST_HALVINGS_OF_A_FREE_STEP


def _still_falls(gains: list[float]) -> bool:
    """Return whether the last gains are below those before them: not all noise yet."""
    if len(gains) < 2 * _WINDOW:
        return True
    recent, before = gains[-_WINDOW:], gains[-2 * _WINDOW : -_WINDOW]
    return float(np.median(recent)) < 0.9 * float(np.median(before))

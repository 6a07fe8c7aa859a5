"""Sampling a truncated Gaussian whose columns nearly depend on each other, until it has mixed.

One coordinate given all others moves as little as K is ill-conditioned. Sweeps here go over the
eigenvectors of K, diagonal scaled to 1, as well: along one of them, v with vᵀKv = lambda, the
density is a normal of variance 1 / lambda on the interval that x >= 0 leaves, which is drawn from
exactly (hit and run in conjugate directions; Smith, 1984; Chen and Schmeiser, 1993). Where no bound
is near, one such sweep gives an independent row.

Half of the chains start at the mode and half beyond where the density has its mass. Sweeps go on,
to a limit, until both halves have the same means but for their errors, and then twice as long
again: as what is left of the starts falls geometrically, a difference then of half a standard
deviation, from three, is a sixtieth of one in the end.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.special import log_ndtr, ndtri_exp

from vnce_engine.distributions.gibbs import sweep

FloatArray = NDArray[np.float64]

# Few enough that the chains' states stay in cache, enough to tell whether they have mixed.
NUM_CHAINS = 250
# Times the burn-in that chains are given to mix, and share of the sweeps until then that follow.
_MOST_BURN_INS = 64
_AFTERWARDS = 2
# Standard errors by which means of the two halves of the chains may differ. Of a hundred columns
# that have mixed, one in 150 runs is given another round.
_AGREEMENT = 4.0
# Squared length of the far start, in units of the number of columns, which it has on average.
_FAR = 4.0


class SamplingWarning(UserWarning):
    """Chains had not mixed when rows were taken from them."""


def mixed_chains(
    precision: FloatArray, linear: FloatArray, rng: np.random.Generator, burn_in: int
) -> "Chains":
    """Return 250 chains that have mixed; warn with `SamplingWarning` if they have not.

    Of exp(-x'Kx / 2 + h'x) on x >= 0, K (d, d) and h (d,). They are given `burn_in` sweeps and as
    many again until they have, 64 times at most.
    """
    chains = Chains.started(precision, linear)
    for number in range(_MOST_BURN_INS):
        chains.sweep(rng, burn_in)
        apart = chains.halves_apart()
        if apart.max() < _AGREEMENT:
            chains.sweep(rng, _AFTERWARDS * (number + 1) * burn_in)
            return chains
    worst = int(apart.argmax())
    warnings.warn(
        f"after {_MOST_BURN_INS * burn_in} sweeps chains with different starts still differ in "
        f"column {worst} (counted from 0), by {apart[worst]:.1f} standard errors of its mean: the "
        f"rows do not have the density asked for. Try `burn_in={10 * burn_in}`.",
        SamplingWarning,
        stacklevel=3,
    )
    return chains


@dataclass
class Chains:
    """Chains of a density and their states (d, number of chains)."""

    precision: FloatArray
    linear: FloatArray
    values: FloatArray
    """Eigenvalues (d,) of K scaled to a diagonal of 1"""
    directions: FloatArray
    """(d, d): its eigenvectors, as columns"""
    state: FloatArray

    @classmethod
    def started(cls, precision: FloatArray, linear: FloatArray) -> "Chains":
        """Start every other chain at the mode and the others far from it."""
        root = np.sqrt(np.diagonal(precision))
        values, directions = np.linalg.eigh(precision / np.outer(root, root))
        factor = np.linalg.cholesky(precision)
        # The mode is the least |Lᵀx - L⁻¹h|² on x >= 0.
        mode, _ = nnls(factor.T, np.linalg.solve(factor, linear))
        widest = np.abs(directions[:, 0]) / root
        length = np.sqrt(_FAR * len(mode) / (widest @ precision @ widest))
        state = np.repeat(mode[:, np.newaxis], NUM_CHAINS, axis=1)
        state[:, 1::2] += (length * widest)[:, np.newaxis]
        return cls(precision, linear, values, directions, state)

    def sweep(self, rng: np.random.Generator, num_sweeps: int) -> None:
        """Redraw along every coordinate and every eigenvector, `num_sweeps` times."""
        root = np.sqrt(np.diagonal(self.precision))[:, np.newaxis]
        pulls = self.directions.T @ (self.linear / root[:, 0]) / self.values
        for _ in range(num_sweeps):
            sweep(self.state, self.precision, self.linear, rng)
            scaled = self.state * root
            for value, direction, pull in zip(self.values, self.directions.T, pulls, strict=True):
                uniforms = rng.random((scaled.shape[1],))
                _move(scaled, direction, float(pull), 1 / math.sqrt(value), uniforms)
            np.divide(scaled, root, out=self.state)

    def halves_apart(self) -> FloatArray:
        """Return how many standard errors (d,) the means of the two halves of chains differ."""
        halves = self.state[:, ::2], self.state[:, 1::2]
        difference = halves[0].mean(axis=1) - halves[1].mean(axis=1)
        variance = sum(half.var(axis=1, ddof=1) / half.shape[1] for half in halves)
        apart: FloatArray = np.abs(difference) / np.sqrt(variance)
        return apart


def _move(
    state: FloatArray, direction: FloatArray, pull: float, sigma: float, uniforms: FloatArray
) -> None:
    """Redraw the states (d, n) along a unit vector (d,), about `pull` with deviation `sigma`."""
    along = direction @ state
    with np.errstate(divide="ignore"):
        bounds = -state / direction[:, np.newaxis]
    rises, falls = direction > 0, direction < 0
    low = bounds[rises].max(axis=0, initial=-np.inf)
    high = bounds[falls].min(axis=0, initial=np.inf)
    centre = pull - along
    step = centre + sigma * interval_draws(
        (low - centre) / sigma, (high - centre) / sigma, uniforms
    )
    state += np.outer(direction, step.clip(low, high))
    # Rounding may have left a coordinate a little below its limit.
    np.maximum(state, 0.0, out=state)


def interval_draws(low: FloatArray, high: FloatArray, uniforms: FloatArray) -> FloatArray:
    """Return draws (n,) of standard normals on [low, high], which may be infinite.

    From uniforms in [0, 1), and in the tails too: an interval above zero is mirrored to below it,
    where the logarithm of the probability keeps its digits.
    """
    is_above = low > 0
    bottom = np.where(is_above, -high, low)
    top = np.where(is_above, -low, high)
    log_top = log_ndtr(top)
    # log((1 - u) Phi(bottom) + u Phi(top)); u = 0 would be a draw at minus infinity.
    share = np.maximum(uniforms, 2.0**-54)
    ratio = np.exp(log_ndtr(bottom) - log_top)
    draws = ndtri_exp(log_top + np.log(share + (1 - share) * ratio)).clip(bottom, top)
    mirrored: FloatArray = np.where(is_above, -draws, draws)
    return mirrored

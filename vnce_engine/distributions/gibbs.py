"""Gibbs sweeps of a Gaussian truncated to the positive orthant, many chains at a time.

Draws are those of `truncated_normal.quantile`. Where the direct formula serves it is written in
NumPy: a sweep makes thousands of calls on short rows, and torch's cost per call is several times
NumPy's.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from vnce_engine.distributions import truncated_normal
from vnce_engine.distributions.truncated_normal import TAIL_ALPHA

FloatArray = NDArray[np.float64]


def sweep(
    state: FloatArray,
    precision: FloatArray,
    linear: FloatArray,
    rng: np.random.Generator,
    num_sweeps: int = 1,
) -> None:
    """Redraw every coordinate of every chain `num_sweeps` times, given the chain's others.

    `state` is (d, number of chains), and is overwritten: the transposed layout keeps a coordinate
    contiguous. Sweeps go on in units in which every conditional variance is 1, a line of ones below
    the state for the linear term, so that a coordinate takes six calls on its line and no more.
    """
    sigma = 1 / np.sqrt(np.diagonal(precision))[:, np.newaxis]
    weights = np.concatenate([-precision * sigma * sigma.T, linear[:, np.newaxis] * sigma], axis=1)
    np.fill_diagonal(weights, 0.0)
    standard = np.concatenate([state / sigma, np.ones((1, state.shape[1]))])
    for _ in range(num_sweeps):
        # A survival probability of 0 would be a draw at infinity.
        survival = np.maximum(rng.random(state.shape), 2.0**-54)
        start = standard.copy()
        # Beyond the tail numbers may become infinite, and the sweep is done again.
        with np.errstate(invalid="ignore"):
            lowest = _redraw(standard, weights, survival, _write_body_excess)
        if not lowest >= -TAIL_ALPHA:
            standard = start
            _redraw(standard, weights, survival, _write_excess)
    np.multiply(standard[:-1], sigma, out=state)


# Writes draws of t - alpha >= 0, for t standard normal truncated to t >= alpha, into the last
# argument. Takes -alpha and survival probabilities.
_WriteExcess = Callable[[FloatArray, FloatArray, FloatArray], None]


def _redraw(
    standard: FloatArray, weights: FloatArray, survival: FloatArray, write_excess: _WriteExcess
) -> float:
    """Redraw each line of `standard` (d + 1, chains) but the last; return the least -alpha."""
    pulls = np.empty_like(survival)
    lines = standard[:-1]
    for weight, pull, probability, line in zip(weights, pulls, survival, lines, strict=True):
        np.dot(weight, standard, out=pull)
        write_excess(pull, probability, line)
    # Rounding may have left a draw a little below its limit.
    np.maximum(lines, 0.0, out=lines)
    return float(pulls.min())


def _write_body_excess(pull: FloatArray, survival: FloatArray, out: FloatArray) -> None:
    ndtr(pull, out=out)
    np.multiply(out, survival, out=out)
    ndtri(out, out=out)
    np.subtract(pull, out, out=out)


def _write_excess(pull: FloatArray, survival: FloatArray, out: FloatArray) -> None:
    out[:] = _excess(survival, -pull)


def standard_draws(pull: FloatArray, uniforms: FloatArray) -> FloatArray:
    """Return draws (n,), n at least 1, from the densities exp(-½ t² + pull t) on t >= 0.

    For x_i in units of 1 / √K_ii, `pull` (n,) is (h_i - sum_{j != i} K_ij x_j) / √K_ii. `uniforms`
    (n,) are in [0, 1).
    """
    # A survival probability of 0 would be a draw at infinity.
    survival = np.maximum(uniforms, 2.0**-54)
    if not pull.min() >= -TAIL_ALPHA:
        return _excess(survival, -pull)
    draws = np.empty_like(pull)
    _write_body_excess(pull, survival, draws)
    return np.maximum(draws, 0.0, out=draws)


def _excess(survival: FloatArray, alpha: FloatArray) -> FloatArray:
    """Return t - alpha >= 0 for standard normals t truncated to t >= alpha."""
    # Survival probabilities are multiples of 2^-53 or all but zero.
    uniforms = torch.from_numpy(np.minimum(1 - survival, 1 - 2.0**-53))
    mu = torch.from_numpy(-alpha)
    draws: FloatArray = truncated_normal.quantile(uniforms, mu, torch.ones_like(mu)).numpy()
    return draws

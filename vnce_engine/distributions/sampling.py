"""Rows of a Gaussian truncated to the positive orthant."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from vnce_engine.distributions.definiteness import SYMMETRY_TOLERANCE, smallest_scaled_eigenvalue
from vnce_engine.distributions.gibbs import sweep
from vnce_engine.distributions.ill_conditioned import mixed_chains
from vnce_engine.runtime.checks import as_array, check_count, shown

FloatArray = NDArray[np.float64]

# More would not fit into memory.
_MOST_ROWS = 100_000_000
# Few enough that the chains' states stay in cache, enough that NumPy's cost per call is shared.
_MAX_CHAINS = 250
# Smallest eigenvalue, K scaled to a diagonal of 1, from which 100 sweeps forget their start: of two
# columns it leaves .97^200 of it.
_ILL_CONDITIONED = 0.03


def sample_truncated_gaussian(
    precision: ArrayLike,
    n: int,
    rng: np.random.Generator,
    *,
    linear: ArrayLike | None = None,
    burn_in: int = 100,
    thinning: int = 10,
) -> FloatArray:
    """Draw n rows (n, d) from the density exp(-x'Kx / 2 + h'x) on x >= 0, up to its constant.

    `precision` is K (d, d), `linear` is h (d,), 0 by default. min(n, 250) chains start at 0 and
    run side by side for `burn_in` sweeps; then each gives a row every `thinning` sweeps. Rows of
    different chains are independent, neighbouring rows come from different chains, and rows i
    and i + 250 are `thinning` sweeps apart. A single chain, as the paper used, would need n times
    the thinning in sequence; one chain a row would spend most of its work on burn-in.

    Where columns nearly depend on each other (a smallest eigenvalue of K, diagonal scaled to 1,
    below .03), sweeps go along the eigenvectors of K too, 250 chains start at two places, and
    sweeps go on until both agree (`ill_conditioned.py`); if they never do, a `SamplingWarning` says
    so.

    Raises `ValueError` if K is not a finite, symmetric, positive definite matrix: an indefinite K
    may have a finite integral over the orthant, but then its chains need not mix.
    """
    check_count("n", n, most=_MOST_ROWS)
    rows = rows_by_sweeps(
        precision, rng, linear=linear, num_chains=n, burn_in=burn_in, thinning=thinning
    )
    num_blocks = math.ceil(n / min(n, _MAX_CHAINS))
    return np.concatenate(list(islice(rows, num_blocks)))[:n]


def rows_by_sweeps(
    precision: ArrayLike,
    rng: np.random.Generator,
    *,
    linear: ArrayLike | None = None,
    num_chains: int = _MAX_CHAINS,
    burn_in: int = 100,
    thinning: int = 10,
) -> Iterator[FloatArray]:
    """Return the rows of `sample_truncated_gaussian` without end, the chains' next ones at a time.

    Each is (c, d), from `num_chains` chains, 250 at most; chains have run for `burn_in` sweeps when
    this returns. Raises as that does.
    """
    precision, linear = _checked(precision, linear)
    check_count("burn_in", burn_in, least=0)
    check_count("thinning", thinning)
    if smallest_scaled_eigenvalue(torch.from_numpy(precision)) < _ILL_CONDITIONED:
        chains = mixed_chains(precision, linear, rng, max(burn_in, 1))
        return _states(chains.state, partial(chains.sweep, rng, thinning))
    state = np.zeros((precision.shape[0], min(num_chains, _MAX_CHAINS)))
    sweep(state, precision, linear, rng, burn_in)
    return _states(state, partial(sweep, state, precision, linear, rng, thinning))


def _states(state: FloatArray, go_on: Callable[[], None]) -> Iterator[FloatArray]:
    """Yield copies of chains' states (d, c) as rows (c, d), after each time that they go on."""
    while True:
        go_on()
        yield state.T.copy()


def _checked(precision: ArrayLike, linear: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    matrix = as_array("precision", precision)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"`precision` must be a square matrix, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError("`precision` must be finite")
    asymmetry = np.abs(matrix - matrix.T).max()
    if asymmetry > SYMMETRY_TOLERANCE * np.abs(matrix).max():
        raise ValueError(f"`precision` must be symmetric, got entries that differ by {asymmetry}")
    matrix = 0.5 * (matrix + matrix.T)
    smallest = np.linalg.eigvalsh(matrix)[0]
    if smallest <= 0:
        raise ValueError(
            f"`precision` must be positive definite, got a smallest eigenvalue of {smallest:.6g}"
        )
    vector = np.zeros(len(matrix)) if linear is None else as_array("linear", linear)
    if vector.shape != (len(matrix),) or not np.isfinite(vector).all():
        raise ValueError(f"`linear` must be {len(matrix)} finite numbers, got {shown(linear)}")
    return matrix, vector

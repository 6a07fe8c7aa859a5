"""Whether a change of the code has left the estimates as they were.

    make bench-estimates                 compare with `benchmarks/estimates.npz`
    make bench-estimates ESTIMATES=--write    store this commit's estimates there

Every estimator is fitted to rings and hubs, complete and with 30 % of the cells missing, and to
three tables of scikit-learn. K and h are compared by their largest difference, as a share of the
largest entry. The stored figures are those of the kernels that `make bench-estimates` asks for,
which all processors have, so that another machine has the same to about nine digits.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_iris, load_wine

import vnce_engine
from vnce_engine import simulate

FloatArray = NDArray[np.float64]

_STORED = Path(__file__).with_suffix(".npz")
_TOLERANCE = 1e-9
_ROWS, _COLUMNS = 300, 10
_FRACTIONS = (0.0, 0.3)
_REAL = {"iris": load_iris, "wine": load_wine, "diabetes": lambda: load_diabetes(scaled=False)}
# Options beside the default, of the estimators that have them.
_VARIANTS: dict[str, dict[str, Any]] = {
    "TruncatedGaussianVNCE paper": {"preset": "paper"},
    "TruncatedGaussianVNCE l1 ebic": {"penalty_kind": "l1", "selection": "ebic"},
    "TruncatedGaussianVNCE none": {"penalty": None},
    "TruncatedGaussianMLE stochastic": {"method": "stochastic"},
    "GaussianEM cv": {"penalty": "cv"},
}


def main() -> None:
    """Fit everything; store the estimates, or say where they differ from the stored ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimates")
    parser.add_argument("--write", action="store_true", help="store the estimates")
    is_new = parser.parse_args().write
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    found = dict(_estimates())
    if is_new:
        np.savez_compressed(_STORED, allow_pickle=False, **found)
        return
    with np.load(_STORED) as stored:
        differences = {
            name: _difference(stored[name], found.get(name)) for name in sorted(stored.files)
        }
    others = {name: value for name, value in differences.items() if not value <= _TOLERANCE}
    for name, value in others.items():
        print(f"{name}: {value:.2g}")
    print(f"{len(differences) - len(others)} of {len(differences)} within {_TOLERANCE:g}")
    sys.exit(bool(others))


def _estimates() -> Iterator[tuple[str, FloatArray]]:
    """Yield every fit's name with [K | h] (d, d + 1); NaN where the estimator refuses the table."""
    for table, X in _tables():
        for name, make in _estimators():
            start = time.process_time()
            try:
                fitted = make().fit(X)
                estimate = np.column_stack([fitted.precision_, fitted.linear_])
            except ValueError:
                estimate = np.full((1, 1), np.nan)
            print(f"{table}: {name} {time.process_time() - start:.1f} s", file=sys.stderr)
            yield f"{table}: {name}", estimate


def _tables() -> Iterator[tuple[str, FloatArray]]:
    for graph, precision in (("ring", simulate.ring_precision), ("hub", simulate.hub_precision)):
        for fraction in _FRACTIONS:
            rng = np.random.default_rng(0)
            K = precision(_COLUMNS, rng)
            X = simulate.sample_truncated_gaussian(K, _ROWS, rng)
            yield (
                f"{graph} {fraction:.0%}",
                simulate.mask_completely_at_random(X, fraction, rng),
            )
    for name, load in _REAL.items():
        yield name, load().data


def _estimators() -> Iterator[tuple[str, Callable[[], Any]]]:
    for name in vnce_engine.__all__:
        if name.startswith(("Gaussian", "TruncatedGaussian")):
            yield name, _of(name)
    for name, options in _VARIANTS.items():
        yield name, _of(name.split()[0], **options)


def _of(name: str, **options: Any) -> Callable[[], Any]:
    return lambda: getattr(vnce_engine, name)(random_state=0, **options)


def _difference(stored: FloatArray, found: FloatArray | None) -> float:
    """Return the largest difference as a share of the largest entry; inf of different kinds."""
    if found is None or stored.shape != found.shape:
        return float("inf")
    if np.isnan(stored).all() and np.isnan(found).all():
        return 0.0
    return float(np.abs(stored - found).max() / np.abs(stored).max())


if __name__ == "__main__":
    main()

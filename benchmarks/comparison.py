"""Comparisons of models held against the truth: which is put first, and how right the errors are.

    python -m benchmarks.comparison [--only truncated] [--tables 20]

Tables of 500 rows and 10 columns of two kinds: truncated Gaussians with h = 0, and Gaussians, moved
up by seven standard deviations, so that the truncated model takes them, too. Each is described by
VNCE of the truncated Gaussian, and by EM of a Gaussian without a penalty and with a strong one.
By how much a model is behind the right one, as `compare` says, is held against what 5,000 new rows
say of the fits to the whole table, whose log densities are exact or nearly.
"""

import argparse
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from vnce_engine import GaussianEM, TruncatedGaussianVNCE, compare
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)

FloatArray = NDArray[np.float64]
Sample = Callable[[FloatArray, int, np.random.Generator], FloatArray]

_COLUMNS, _ROWS, _NEW_ROWS, _SHIFT = 10, 500, 5_000, 7.0
_FRACTIONS = (0.0, 0.3)
_QUANTILE = 1.96
_MODELS = {
    "truncated": TruncatedGaussianVNCE(penalty=0.3),
    "Gaussian": GaussianEM(),
    "Gaussian, penalty .3": GaussianEM(penalty=0.3),
}


def _gaussian(precision: FloatArray, num_rows: int, rng: np.random.Generator) -> FloatArray:
    scale = np.sqrt(np.diag(covariance := np.linalg.inv(precision)))
    return rng.multivariate_normal(_SHIFT * scale, covariance, size=num_rows)


# By the model that is right.
_SAMPLES: dict[str, Sample] = {"truncated": sample_truncated_gaussian, "Gaussian": _gaussian}


def main() -> None:
    """Print a line for each kind of table, share of missing cells, and other model."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison")
    parser.add_argument("--only", nargs="+", choices=list(_SAMPLES), default=list(_SAMPLES))
    parser.add_argument("--tables", type=int, default=20)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print("right | missing | other | put first | behind, as told | error told | really | covered")
    for right in chosen.only:
        sample = _SAMPLES[right]
        for fraction in _FRACTIONS:
            tables = [_compared(right, sample, fraction, seed) for seed in range(chosen.tables)]
            for other in _MODELS:
                if other != right:
                    print(f"{right} | {fraction:g} | {other} | {_line(tables, other)}", flush=True)


def _compared(
    right: str, sample: Sample, fraction: float, seed: int
) -> dict[str, tuple[float, float, float]]:
    """Return of each other model by how much it is behind, the error told, and the real number."""
    rng = np.random.default_rng(seed)
    precision = ring_precision(_COLUMNS, rng)
    rows = sample(precision, _ROWS + _NEW_ROWS, rng)
    table = mask_completely_at_random(rows, fraction, rng) if fraction else rows
    found = {model.name: model for model in compare(_MODELS, table[:_ROWS]).models}
    new = {name: model.estimator.score_samples(table[_ROWS:]) for name, model in found.items()}
    lines = {}
    for name in _MODELS:
        gains = found[right].held_out.log_densities - found[name].held_out.log_densities
        error = float(gains.std(ddof=1) / np.sqrt(len(gains)))
        lines[name] = float(gains.mean()), error, float((new[right] - new[name]).mean())
    return lines


def _line(tables: list[dict[str, tuple[float, float, float]]], other: str) -> str:
    told, error, really = np.array([table[other] for table in tables]).T
    covered = float((np.abs(told - really) <= _QUANTILE * error).mean())
    numbers = f"{told.mean():.3f} | {error.mean():.3f} | {really.mean():.3f} | {covered:.2f}"
    return f"{(told > 0).mean():.2f} | {numbers}"


if __name__ == "__main__":
    main()

"""How often networks of two groups are found to differ: where they do not, and where they do.

    python -m benchmarks.difference [--tables 100] [--global-tables 60] [--rows 500]
        [--columns 10] [--permutations 99] [--fractions 0,0.3] [--changed 0]

Each table has two groups of so many rows of a ring, of which `--changed` edges are missing in the
second group, and a share of missing cells. One line each share: of the `--tables`, the share of
pairs that are the same and have p <= .05, and of tables in which some such pair has q <= .1 (each
with its standard error over tables); of changed pairs, their mean |partial correlation| where they
are there and the share with q <= .1; and, of the first `--global-tables`, the shares with p <= .05
of either test of the whole network. Permutations end as soon as it is known whether p <= .05.
"""

import argparse
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from vnce_engine import TruncatedGaussianVNCE
from vnce_engine.estimators.difference import fit_permutations, held
from vnce_engine.inference.differences import NetworkPair, Statistics, compare_pairs
from vnce_engine.inference.metrics import scaled_interaction
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)

FloatArray = NDArray[np.float64]

LEVEL, RATE = 0.05, 0.1


def main() -> None:
    """Print a line for each share of missing cells."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.difference")
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--global-tables", type=int, default=60)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--permutations", type=int, default=99)
    parser.add_argument("--fractions", default="0,0.3")
    parser.add_argument("--changed", type=int, default=0)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print("missing | p <= .05 | some q <= .1 | changed: size | found | max |z| | sum of z²")
    for fraction in map(float, chosen.fractions.split(",")):
        lines = []
        for seed in range(chosen.tables):
            table = _table(seed, chosen.rows, chosen.columns, fraction, chosen.changed)
            num_permutations = chosen.permutations if seed < chosen.global_tables else 0
            lines.append(_judge(*table, chosen.rows, num_permutations, seed))
            print(f"{seed + 1} tables: {_line(fraction, lines)}", end="\r", flush=True)
        print(f"{'':100}\r{_line(fraction, lines)}", flush=True)


def _table(
    seed: int, num_rows: int, width: int, fraction: float, num_changed: int
) -> tuple[FloatArray, FloatArray]:
    """Return the rows of both groups, and the partial correlations (d, d) that the second lacks."""
    rng = np.random.default_rng([seed, 11])
    precision = ring_precision(width, rng)
    other = precision.copy()
    joined = np.argwhere(np.triu(precision, k=1))
    for i, j in joined[rng.choice(len(joined), num_changed, replace=False)]:
        other[i, j] = other[j, i] = 0.0
    X = np.vstack([sample_truncated_gaussian(K, num_rows, rng) for K in (precision, other)])
    lost = scaled_interaction(precision) - scaled_interaction(other)
    return mask_completely_at_random(X, fraction, rng), lost


def _judge(
    X: FloatArray, lost: FloatArray, num_rows: int, num_permutations: int, seed: int
) -> FloatArray:
    """Return the figures of one table."""
    model = TruncatedGaussianVNCE().fit(X)
    known = ~np.isnan(X).all(axis=1)
    tables = X[:num_rows][known[:num_rows]], X[num_rows:][known[num_rows:]]
    fits = (held(model, model.column_transform_),) * 2

    def permuted(number: int) -> NetworkPair:
        [pair] = fit_permutations(fits, tables, [number], seed)
        assert isinstance(pair, NetworkPair), pair
        return pair

    observed = permuted(0)
    found = compare_pairs(observed, [], X.shape[1], 0)
    of_pairs = lost[tuple(found.pairs.T)]
    same, known_pairs = of_pairs == 0, ~np.isnan(found.z)
    changed = ~same
    return np.array(
        [
            (found.p_value[same & known_pairs] <= LEVEL).mean(),
            float((found.q_value[same & known_pairs] <= RATE).any()),
            np.abs(of_pairs[changed]).mean() if changed.any() else np.nan,
            (found.q_value[changed] <= RATE).mean() if changed.any() else np.nan,
            *_rejections(permuted, observed, num_permutations),
        ]
    )


def _rejections(
    permuted: Callable[[int], NetworkPair], observed: NetworkPair, num_permutations: int
) -> tuple[float, float]:
    """Return 1 for p <= .05 of the largest |z| and of the sum of z², 0 otherwise."""
    if not num_permutations:
        return np.nan, np.nan
    most = LEVEL * (1 + num_permutations) - 1
    value = Statistics.of(observed.z)
    as_large = np.zeros(2)
    for number in range(1, num_permutations + 1):
        one = Statistics.of(permuted(number).z)
        as_large += [one.largest >= value.largest, one.sum_of_squares >= value.sum_of_squares]
        if (as_large > most).all():
            break
    largest, squares = (as_large <= most).astype(float)
    return float(largest), float(squares)


def _line(fraction: float, lines: list[FloatArray]) -> str:
    figures = []
    for values in np.array(lines).T:
        known = values[~np.isnan(values)]
        spread = known.std(ddof=1) / np.sqrt(len(known)) if len(known) > 1 else np.nan
        figures.append(f"{known.mean():.3f} ± {spread:.3f}" if len(known) else "")
    return " | ".join([f"{fraction:.0%}", *figures])


if __name__ == "__main__":
    main()

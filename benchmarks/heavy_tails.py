"""How many edges are found among independent columns that no truncated Gaussian describes.

    python -W ignore -m benchmarks.heavy_tails [--tables 40] [--columns 5]

Columns are lognormal with a sigma of 1, or half zeros and else half-normal: their spread exceeds
their mean, as that of no truncated normal does. Or lognormal with a sigma of .5, about as skewed as
some with a linear term, and as none without. For each of them, each linear term and each number of
rows, over tables: the share with any edge found, which would be a false one; the mean number of
edges found; the share of intervals that are all of -1 to 1; CPU seconds of a fit.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray

from vnce_engine import TruncatedGaussianVNCE

FloatArray = NDArray[np.float64]

COLUMNS: Mapping[str, Callable[[np.random.Generator, tuple[int, int]], FloatArray]] = {
    "lognormal .5": lambda rng, shape: rng.lognormal(sigma=0.5, size=shape),
    "lognormal 1": lambda rng, shape: rng.lognormal(size=shape),
    "half zeros": lambda rng, shape: (rng.random(shape) < 0.5) * np.abs(rng.normal(size=shape)),
}


def main() -> None:
    """Print a line for each kind of columns, linear term and number of rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.heavy_tails")
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--columns", type=int, default=5)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print("columns | linear | rows | any found | found | empty intervals | seconds")
    for (kind, draw), linear, rows in product(COLUMNS.items(), ("zero", "auto"), (100, 400)):
        lines = []
        for seed in range(chosen.tables):
            X = draw(np.random.default_rng([seed, rows]), (rows, chosen.columns))
            start = time.process_time()
            edges = TruncatedGaussianVNCE(linear=linear).fit(X).edges_
            found = sum(edge.selected for edge in edges)
            empty = np.mean([(edge.lower, edge.upper) == (-1, 1) for edge in edges])
            lines.append((found > 0, found, empty, time.process_time() - start))
        means = " | ".join(f"{mean:.3f}" for mean in np.mean(lines, axis=0))
        print(f"{kind} | {linear} | {rows} | {means}", flush=True)


if __name__ == "__main__":
    main()

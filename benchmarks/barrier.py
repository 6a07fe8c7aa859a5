"""How much the barrier against an indefinite K flattens interactions that are far from it.

    python -m benchmarks.barrier [--tables 50]

Complete rings without a penalty: the mean of estimate over truth on edges, and its standard error.
"""

import argparse

import numpy as np
import torch

from vnce_engine.data.observations import Observations
from vnce_engine.pipeline.fit import BARRIER_ROWS, FitOptions
from vnce_engine.pipeline.model_fits import fit_truncated_gaussian
from vnce_engine.simulate import ring_precision, sample_truncated_gaussian

NUM_COLUMNS = 6
NUM_ROWS = (300, 1_000, 5_000, 20_000)


def share(seed: int, num_rows: int, barrier_rows: float) -> float:
    """Return the mean over the edges of one ring."""
    rng = np.random.default_rng(seed)
    precision = ring_precision(NUM_COLUMNS, rng)
    X = sample_truncated_gaussian(precision, num_rows, rng)
    options = FitOptions(linear="zero", penalty=None, barrier_rows=barrier_rows)
    found = fit_truncated_gaussian(
        Observations.from_array(X), options, seed
    ).model.precision.numpy()
    edges = np.triu(precision != 0, k=1)
    return float((found[edges] / precision[edges]).mean())


def main() -> None:
    """Print a line for each number of rows, with the barrier and without it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.barrier")
    parser.add_argument("--tables", type=int, default=50)
    num_tables = parser.parse_args().tables
    torch.set_num_threads(1)
    for num_rows in NUM_ROWS:
        for barrier_rows in (BARRIER_ROWS, 0.0):
            shares = [share(seed, num_rows, barrier_rows) for seed in range(100, 100 + num_tables)]
            error = np.std(shares, ddof=1) / num_tables**0.5
            print(f"n={num_rows} barrier {barrier_rows:g}: {np.mean(shares):.4f} ± {error:.4f}")


if __name__ == "__main__":
    main()

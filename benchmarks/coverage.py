"""How often 95 % intervals hold the true partial correlation, and how many edges found are false.

    python -m benchmarks.coverage [--tables 40] [--rows 500] [--columns 10] [--only RING ...]

For each graph and share of missing cells, over tables: the share of intervals that hold the truth,
of edges and of other pairs; the mean share of false edges among those found, and of edges that are
found; the mean standard error; and CPU seconds of a fit.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.validity.simulated import Truth, hub, pairs, random_signs, ring, star
from vnce_engine import GaussianVNCE, TruncatedGaussianVNCE
from vnce_engine.inference.metrics import scaled_interaction

_GRAPHS: dict[str, Callable[[int, np.random.Generator], Truth]] = {
    "ring": ring,
    "hub": hub,
    "random": lambda d, rng: random_signs(d, rng, free_linear=True, density=0.3),
    "star, Gaussian": star,
}
_FRACTIONS = (0.0, 0.3, 0.5)


def main() -> None:
    """Print a line for each graph and share of missing cells."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage")
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--only", nargs="+", choices=list(_GRAPHS), default=list(_GRAPHS))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print("graph | missing | covered: edges | other pairs | false | found | error | seconds")
    for name in chosen.only:
        for fraction in _FRACTIONS:
            tables = [
                _table(_GRAPHS[name], chosen.columns, chosen.rows, fraction, seed)
                for seed in range(chosen.tables)
            ]
            means = np.nanmean(np.array(tables), axis=0)
            figures = " | ".join(f"{mean:.3f}" for mean in means)
            print(f"{name} | {fraction:.0%} | {figures}", flush=True)


def _table(
    graph: Callable[[int, np.random.Generator], Truth], d: int, n: int, fraction: float, seed: int
) -> tuple[float, ...]:
    rng = np.random.default_rng([seed, d, n])
    truth = graph(d, rng)
    X = truth.sample(n, fraction, rng)
    start = time.process_time()
    model: Any = (GaussianVNCE if truth.is_far else TruncatedGaussianVNCE)(random_state=seed)
    model.fit(X)
    seconds = time.process_time() - start
    if model.no_uncertainty_ is not None:
        return (np.nan,) * 5 + (seconds,)
    order = np.lexsort(([e.target for e in model.edges_], [e.source for e in model.edges_]))
    edges = [model.edges_[k] for k in order]
    rho, is_edge = pairs(scaled_interaction(truth.precision)), truth.is_edge
    covered = np.array([e.lower <= r <= e.upper for e, r in zip(edges, rho, strict=True)])
    found = np.array([e.verdict == "present" for e in edges])
    return (
        float(covered[is_edge].mean()),
        float(covered[~is_edge].mean()) if (~is_edge).any() else np.nan,
        float((found & ~is_edge).sum() / max(found.sum(), 1)),
        float(found[is_edge].mean()),
        float(np.mean([e.standard_error for e in edges])),
        seconds,
    )


if __name__ == "__main__":
    main()

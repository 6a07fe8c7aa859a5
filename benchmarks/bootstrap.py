"""How far resamples spread, beside the fit's standard errors and the spread over other tables.

    python -m benchmarks.bootstrap [--resamples 100] [--columns 10] [--rows 500] [--only ring ...]
        [--fractions 0,0.3,0.5]

For each graph and share of missing cells, of one table: the standard deviation of debiased partial
correlations over resamples, in the standard errors that the fit to the table gives them, mean over
pairs; the same over as many other tables of the network, fitted by the same choices; that of
penalised ones over resamples; CPU seconds of the fit and of a resample. The SD of B tables has by
itself a relative error of 1 / √(2B), in each pair.
"""

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from vnce_engine import TruncatedGaussianVNCE, bootstrap
from vnce_engine.experiments.coverage import GRAPHS
from vnce_engine.simulate import mask_completely_at_random, sample_truncated_gaussian

T = TypeVar("T")
FloatArray = NDArray[np.float64]


def main() -> None:
    """Print a line for each graph and share of missing cells."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bootstrap")
    parser.add_argument("--resamples", type=int, default=100)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--only", nargs="+", choices=list(GRAPHS), default=list(GRAPHS))
    parser.add_argument("--fractions", default="0,0.3,0.5")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print("graph | missing | SD/SE: resamples | other tables | penalised | fit | resample")
    for graph in chosen.only:
        for fraction in map(float, chosen.fractions.split(",")):
            figures = _line(graph, fraction, chosen.rows, chosen.columns, chosen.resamples)
            print(f"{graph} | {fraction:.0%} | {figures}", flush=True)


def _line(graph: str, fraction: float, n: int, d: int, num_resamples: int) -> str:
    def table(seed: int) -> FloatArray:
        # One network, other rows and cells.
        network, rows = np.random.default_rng(0), np.random.default_rng([seed, 1])
        X = sample_truncated_gaussian(GRAPHS[graph](d, network), n, rows)
        return mask_completely_at_random(X, fraction, rows)

    X = table(0)
    fit_seconds, model = _timed(lambda: TruncatedGaussianVNCE().fit(X))
    seconds, found = _timed(lambda: bootstrap(model, X, num_resamples))
    held, others = model.with_choices(model.choices()), []
    for seed in range(1, num_resamples + 1):
        held.set_params(random_state=seed).fit(table(seed))
        others.append(_of_pairs(held, "debiased"))
    error = _of_pairs(model, "standard_error")
    spreads = (
        found.debiased.standard_deviation,
        np.nanstd(others, axis=0, ddof=1),
        found.partial_correlation.standard_deviation,
    )
    ratios = " | ".join(f"{np.nanmean(spread / error):.3f}" for spread in spreads)
    return f"{ratios} | {fit_seconds:.1f} | {seconds / num_resamples:.2f}"


def _of_pairs(model: TruncatedGaussianVNCE, name: str) -> FloatArray:
    edges = sorted(model.edges_, key=lambda edge: (edge.source, edge.target))
    return np.array([getattr(edge, name) for edge in edges], dtype=np.float64)


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


if __name__ == "__main__":
    main()

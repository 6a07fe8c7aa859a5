"""The engine's figures in a few minutes: edge recovery and CPU time on simulated graphs.

    python -m benchmarks.quick --seeds 10 [--paper]

Data sets are those of `graph_recovery.simulate`, seeds 0, 1, 2, ... Times are those of the process
on one thread, all methods on the same table one after the other.
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.covariance import GraphicalLassoCV

from vnce_engine import TruncatedGaussianNCE, TruncatedGaussianVNCE
from vnce_engine.experiments.graph_recovery import GRAPHS, simulate
from vnce_engine.inference.metrics import edge_roc

FloatArray = NDArray[np.float64]
Method = Callable[[FloatArray], FloatArray]

FRACTIONS = (0.0, 0.3, 0.5)
FIXED_PENALTY = 0.3
GRAPHICAL_LASSO = "graphical lasso CV, mean-filled"
METHODS: dict[str, Method] = {
    "VNCE, default": lambda X: TruncatedGaussianVNCE(random_state=0).fit(X).precision_,
    f"VNCE, zero h, penalty {FIXED_PENALTY}": lambda X: (
        TruncatedGaussianVNCE(linear="zero", penalty=FIXED_PENALTY, random_state=0)
        .fit(X)
        .precision_
    ),
    "NCE, mean-filled, zero h, no penalty": lambda X: (
        TruncatedGaussianNCE(linear="zero", penalty=None, random_state=0).fit(X).precision_
    ),
    "NCE, mean-filled, default": lambda X: TruncatedGaussianNCE(random_state=0).fit(X).precision_,
    GRAPHICAL_LASSO: lambda X: GraphicalLassoCV().fit(_mean_filled(X)).precision_,
}

PAPER: dict[str, Method] = {
    'VNCE, preset "paper"': lambda X: (
        TruncatedGaussianVNCE(preset="paper", random_state=0).fit(X).precision_
    ),
}


@dataclass(frozen=True)
class Run:
    """One method on one data set."""

    auc: float
    """Of |K_ij| over all pairs."""
    signed_auc: float
    """Of K_ij, which is positive for every true edge here; its sign is unknown with real data."""
    squared_error: float
    """Mean over pairs of the squared error of K_ij."""
    seconds: float
    """CPU time."""


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--seeds", type=int, default=10, help="data sets a line; their seeds are 0, 1, 2, ..."
    )
    parser.add_argument(
        "--paper", action="store_true", help='also measure preset="paper", in ten more minutes'
    )
    arguments = parser.parse_args()
    num_seeds = arguments.seeds
    methods = METHODS | (PAPER if arguments.paper else {})
    torch.set_num_threads(1)
    console = Console(width=130)
    console.print(
        f"d = 20, n = 1000, {num_seeds} data sets a line, seeds from 0."
        " AUC is that of the score |K_ij|. True K: common diagonal = largest row sum + 0.01."
        " Median, quartiles, standard error of the mean; seconds of CPU time, one thread."
    )
    table = _empty_table()
    for graph in GRAPHS:
        for fraction in FRACTIONS:
            runs = _measure(methods, graph, fraction, num_seeds)
            reference = float(np.median([run.seconds for run in runs[GRAPHICAL_LASSO]]))
            for method, results in runs.items():
                table.add_row(graph, f"{fraction:.0%}", method, *_summary(results, reference))
            table.add_section()
    console.print(table)


def _measure(
    methods: Mapping[str, Method], graph: str, fraction: float, num_seeds: int
) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {method: [] for method in methods}
    for seed in range(num_seeds):
        truth, X = simulate(graph, fraction, seed)
        for method, estimate in methods.items():
            runs[method].append(_run(estimate, truth, X))
    return runs


def _run(estimate: Method, truth: FloatArray, X: FloatArray) -> Run:
    start = time.process_time()
    with warnings.catch_warnings():
        # The graphical lasso warns about folds that do not converge on filled tables.
        warnings.simplefilter("ignore")
        precision = estimate(X)
    seconds = time.process_time() - start
    precision = (precision + precision.T) / 2
    pairs = np.triu_indices(len(truth), k=1)
    aucs = [edge_roc(score, truth != 0).auc for score in (np.abs(precision), precision)]
    auc, signed_auc = (auc for auc in aucs if auc is not None)  # both graphs have edges and gaps
    return Run(auc, signed_auc, float(np.mean((precision - truth)[pairs] ** 2)), seconds)


def _summary(runs: list[Run], reference: float) -> list[str]:
    auc = np.array([run.auc for run in runs])
    low, median, high = np.quantile(auc, [0.25, 0.5, 0.75])
    error = auc.std(ddof=1) / math.sqrt(len(auc)) if len(auc) > 1 else math.nan
    seconds = float(np.median([run.seconds for run in runs]))
    squared_error = np.median([run.squared_error for run in runs])
    return [
        f"{median:.3f}",
        f"{low:.3f}-{high:.3f}",
        f"{error:.3f}",
        f"{np.median([run.signed_auc for run in runs]):.3f}",
        f"{squared_error:.4f}",
        f"{seconds:.2f}",
        f"{seconds / reference:.1f}",
    ]


def _empty_table() -> Table:
    table = Table()
    for name in ("graph", "missing", "method"):
        table.add_column(name)
    for name in (
        "AUC",
        "quartiles",
        "SE",
        "AUC of K_ij",
        "MSE of K_ij",
        "seconds",
        "x graphical lasso",
    ):
        table.add_column(name, justify="right")
    return table


def _mean_filled(X: FloatArray) -> FloatArray:
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X)


if __name__ == "__main__":
    main()

"""Penalties and ways of choosing their strength on simulated rings; the table of docs/penalties.md.

    python -m benchmarks.penalties [--seeds 5]

Each data set is `graph_recovery.simulate("ring", fraction, seed)`, seeds from 100 on: d = 20,
n = 1000, 20 true edges. CPU seconds on one thread.
"""

import argparse
import time
import warnings
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from vnce_engine import TruncatedGaussianVNCE
from vnce_engine.experiments.graph_recovery import simulate
from vnce_engine.inference.metrics import edge_roc

FRACTIONS = (0.0, 0.3)
FIRST_SEED = 100
SETTINGS: dict[str, dict[str, Any]] = {
    "auto": {},
    "adaptive": {"penalty_kind": "adaptive"},
    "ridge": {"penalty_kind": "ridge"},
    "l1, held-out": {"penalty_kind": "l1"},
    "l1, eBIC": {"penalty_kind": "l1", "selection": "ebic"},
}
COLUMNS = ("AUC of |K|", "non-zero", "of them true", "MSE of K_ij", "K definite", "seconds")


def main() -> None:
    """Print a line for every penalty and share of missing cells; medians over data sets."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.penalties", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="data sets a line")
    num_seeds = parser.parse_args().seeds
    torch.set_num_threads(1)
    table = Table("penalty", "missing", *COLUMNS)
    for name, options in SETTINGS.items():
        for fraction in FRACTIONS:
            seeds = range(FIRST_SEED, FIRST_SEED + num_seeds)
            runs = np.array([_run(fraction, seed, options) for seed in seeds])
            auc, edges, true, error, _, seconds = np.median(runs, axis=0)
            definite = f"{int(runs[:, 4].sum())} of {num_seeds}"
            figures = (f"{auc:.3f}", f"{edges:.0f}", f"{true:.0f}", f"{error:.4f}", definite)
            table.add_row(name, f"{fraction:.0%}", *figures, f"{seconds:.1f}")
    Console(width=110).print(table)


def _run(fraction: float, seed: int, options: dict[str, Any]) -> tuple[float, ...]:
    truth, X = simulate("ring", fraction, seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of estimates that are compared here for better or worse
        fitted = TruncatedGaussianVNCE(random_state=0, **options).fit(X)
    seconds = time.process_time() - start
    pairs = np.triu_indices(len(truth), k=1)
    K, is_edge = fitted.precision_, truth[pairs] != 0
    auc = edge_roc(np.abs(K), truth != 0).auc
    assert auc is not None  # a ring has edges and gaps
    is_found = K[pairs] != 0
    return (
        auc,
        float(is_found.sum()),
        float((is_found & is_edge).sum()),
        float(np.mean((K - truth)[pairs] ** 2)),
        float(fitted.diagnostics_.is_positive_definite),
        seconds,
    )


if __name__ == "__main__":
    main()

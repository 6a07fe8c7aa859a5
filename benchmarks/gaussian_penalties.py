"""Penalties of the plain Gaussian on simulated rings and hubs; the table of docs/penalties.md.

    python -m benchmarks.gaussian_penalties [--seeds 6] [--first-seed 200]

Rows are drawn from N(0, K⁻¹), K that of `benchmarks.penalties`: d = 20, n = 1000, cells missing
completely at random. Differences are paired over data sets: a line's less that of "auto". Service
defaults (`tol`) throughout; CPU seconds on one thread.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from vnce_engine import GaussianVNCE
from vnce_engine.estimators.gaussian_em import GaussianEM
from vnce_engine.inference.metrics import edge_roc
from vnce_engine.simulate import hub_precision, mask_completely_at_random, ring_precision

FRACTIONS = (0.0, 0.3)
FIRST_SEED = 200
NUM_ROWS = 1000
NUM_COLUMNS = 20
TOLERANCE = 3e-3
GRAPHS = {"ring": ring_precision, "hub": hub_precision}
# Estimators share no public base class to name here.
SETTINGS: dict[str, Callable[[], Any]] = {
    "auto": lambda: _vnce(),
    "ridge": lambda: _vnce(penalty_kind="ridge"),
    "centred ridge, 1.7": lambda: _vnce(penalty_kind="centred-ridge", penalty=1.7),
    "l1, held-out": lambda: _vnce(penalty_kind="l1"),
    "l1, eBIC": lambda: _vnce(penalty_kind="l1", selection="ebic"),
    "none": lambda: _vnce(penalty=None),
    "EM": lambda: GaussianEM(),
    "EM, lasso by cv": lambda: GaussianEM(penalty="cv", random_state=0),
    "EM, lasso by eBIC": lambda: GaussianEM(penalty="ebic", random_state=0),
}
COLUMNS = ("AUC of |K|", "less auto's (SE)", "MSE of K_ij", "less auto's (SE)", "strength", "s")


def simulate(
    graph: str, fraction: float, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the true K and a table of normal rows with a `fraction` of its cells missing."""
    rng = np.random.default_rng(seed)
    K = GRAPHS[graph](NUM_COLUMNS, rng)
    X = rng.multivariate_normal(np.zeros(NUM_COLUMNS), np.linalg.inv(K), size=NUM_ROWS)
    return K, mask_completely_at_random(X, fraction, rng)


def main() -> None:
    """Print a table for every graph and share of missing cells."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gaussian_penalties", description=__doc__
    )
    parser.add_argument("--seeds", type=int, default=6, help="data sets a line")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    console = Console(width=120)
    for graph in GRAPHS:
        for fraction in FRACTIONS:
            table = Table("penalty", *COLUMNS, title=f"{graph}, {fraction:.0%} missing")
            auto: NDArray[np.float64] | None = None
            for name, make in SETTINGS.items():
                runs = np.array([_run(make, *simulate(graph, fraction, seed)) for seed in seeds])
                auto = runs if auto is None else auto
                table.add_row(name, *_figures(runs, auto))
            console.print(table)


def _vnce(**choices: Any) -> GaussianVNCE:
    return GaussianVNCE(tol=TOLERANCE, random_state=0, **choices)


def _run(
    make: Callable[[], Any], truth: NDArray[np.float64], X: NDArray[np.float64]
) -> tuple[float, ...]:
    """Return AUC, mean square error, chosen strength (NaN for none) and CPU seconds of a fit."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of estimates that are compared here for better or worse
        fitted = make().fit(X)
    seconds = time.process_time() - start
    pairs = np.triu_indices(len(truth), k=1)
    K = fitted.precision_
    auc = edge_roc(np.abs(K), truth != 0).auc
    assert auc is not None  # these graphs have edges and gaps
    strength = np.nan if fitted.penalty_ is None else fitted.penalty_
    return auc, float(np.mean((K - truth)[pairs] ** 2)), strength, seconds


def _figures(runs: NDArray[np.float64], auto: NDArray[np.float64]) -> list[str]:
    means = runs.mean(axis=0)
    differences = runs[:, :2] - auto[:, :2]
    errors = differences.std(axis=0, ddof=1) / np.sqrt(len(runs))
    auc, mse = (
        f"{difference:+.4f} ({error:.4f})"
        for difference, error in zip(differences.mean(axis=0), errors, strict=True)
    )
    strength = "" if np.isnan(means[2]) else f"{np.median(runs[:, 2]):.3g}"
    return [f"{means[0]:.4f}", auc, f"{means[1]:.5f}", mse, strength, f"{means[3]:.2f}"]


if __name__ == "__main__":
    main()

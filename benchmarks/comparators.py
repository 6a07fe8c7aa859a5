"""The comparators on simulated graphs: edge recovery and CPU time, missing cells or not.

    python -m benchmarks.comparators --seeds 6 [--only mle,pcd] [--steps]

Data sets are those of `benchmarks.quick`, from seed 100 on: seeds below are kept for the figures
that are published. `--steps` shows how Monte Carlo likelihood depends on its step size instead.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.quick import FRACTIONS
from vnce_engine.comparators.estimators import (
    TruncatedGaussianCD,
    TruncatedGaussianMLE,
    TruncatedGaussianPseudoLikelihood,
    TruncatedGaussianScoreMatching,
)
from vnce_engine.comparators.gaussian_estimator import GaussianEM
from vnce_engine.estimators import TruncatedGaussianVNCE
from vnce_engine.experiments.graph_recovery import GRAPHS, simulate
from vnce_engine.metrics import edge_roc

FloatArray = NDArray[np.float64]

FIRST_SEED = 100
# Stronger shrinkage than this hurts on rings, weaker on hubs.
PENALTY = 1.0
# Estimators share no public base class to name here.
METHODS: dict[str, Callable[[], Any]] = {
    "vnce": lambda: TruncatedGaussianVNCE(random_state=0),
    "mle": lambda: TruncatedGaussianMLE(random_state=0),
    "mle-penalised": lambda: TruncatedGaussianMLE(penalty=PENALTY, random_state=0),
    "mle-ridge": lambda: TruncatedGaussianMLE(
        penalty=PENALTY / 3, penalty_kind="ridge", random_state=0
    ),
    "cd": lambda: TruncatedGaussianCD(persistent=False, random_state=0),
    "pcd": lambda: TruncatedGaussianCD(random_state=0),
    "pseudo": lambda: TruncatedGaussianPseudoLikelihood(random_state=0),
    "pseudo-mean": lambda: TruncatedGaussianPseudoLikelihood(imputation="mean", random_state=0),
    "pseudo-penalised": lambda: TruncatedGaussianPseudoLikelihood(penalty=PENALTY, random_state=0),
    "score": lambda: TruncatedGaussianScoreMatching(random_state=0),
    "score-mean": lambda: TruncatedGaussianScoreMatching(imputation="mean", random_state=0),
    "score-zero": lambda: TruncatedGaussianScoreMatching(imputation="zero", random_state=0),
    "score-penalised": lambda: TruncatedGaussianScoreMatching(penalty=PENALTY, random_state=0),
    "gaussian-em": lambda: GaussianEM(random_state=0),
    "glasso-ebic": lambda: GaussianEM(penalty="ebic", random_state=0),
    "glasso-cv": lambda: GaussianEM(penalty="cv", random_state=0),
}
STEP_SIZES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0)


def main() -> None:
    """Run the comparison and print its table, cell by cell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=6, help="data sets a line, from seed 100 on")
    parser.add_argument("--only", default=",".join(METHODS), help="methods, comma-separated")
    parser.add_argument("--steps", action="store_true", help="show sensitivity to the step size")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    methods = {name: METHODS[name] for name in arguments.only.split(",")}
    if arguments.steps:
        methods = {f"mle-step-{size:g}": _stochastic(size) for size in STEP_SIZES}
    line = "{:6}{:>5}  {:18}{:>9}{:>9}{:>9}{:>8}  {}"
    print(line.format("graph", "gaps", "method", "AUC |K|", "AUC K", "MSE of K", "CPU s", "status"))
    for graph in GRAPHS:
        for fraction in FRACTIONS:
            for name, make in methods.items():
                figures = cell(make, graph, fraction, seeds)
                # Cell by cell, so that a run cut short has shown what it measured.
                print(line.format(graph, f"{fraction:.0%}", name, *figures), flush=True)


def cell(make: Callable[[], Any], graph: str, fraction: float, seeds: Sequence[int]) -> list[str]:
    """Return medians over data sets of both AUCs, the squared error of K and seconds; statuses."""
    figures, statuses = [], set()
    for seed in seeds:
        truth, X = simulate(graph, fraction, seed)
        start = time.process_time()
        estimator = make().fit(X)
        seconds = time.process_time() - start
        K, is_edge = estimator.precision_, truth != 0
        pairs = np.triu_indices(len(K), k=1)
        error = float(np.mean((K - truth)[pairs] ** 2))
        figures.append((edge_roc(np.abs(K), is_edge).auc, edge_roc(K, is_edge).auc, error, seconds))
        statuses.add(str(estimator.status_))
    by_magnitude, signed, error, seconds = np.median(figures, axis=0)
    return [
        f"{by_magnitude:.3f}",
        f"{signed:.3f}",
        f"{error:.4f}",
        f"{seconds:.2f}",
        ", ".join(sorted(statuses)),
    ]


def step_size_sensitivity(
    truth: FloatArray, X: FloatArray, step_sizes: Sequence[float] = STEP_SIZES
) -> dict[float, float | None]:
    """Return the AUC by |K| of stochastic Monte Carlo likelihood at each step size."""
    fits = {size: _stochastic(size)().fit(X) for size in step_sizes}
    return {size: edge_roc(np.abs(f.precision_), truth != 0).auc for size, f in fits.items()}


def _stochastic(step_size: float) -> Callable[[], TruncatedGaussianMLE]:
    """Return the paper's recipe with shorter chains, which lose nothing here and take minutes."""
    return lambda: TruncatedGaussianMLE(
        method="stochastic", step_size=step_size, burn_in=10, thinning=2, random_state=0
    )


if __name__ == "__main__":
    main()

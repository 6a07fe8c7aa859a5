"""The comparators on simulated graphs: edge recovery and CPU time, missing cells or not.

    python -m benchmarks.comparators --seeds 6 [--only mle,pcd]

Data sets are those of `benchmarks.quick`, from seed 100 on: seeds below are kept for the figures
that are published. Estimators that take minutes a fit have `benchmarks.step_sizes`.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from benchmarks.quick import FRACTIONS
from vnce_engine import (
    TruncatedGaussianCD,
    TruncatedGaussianMLE,
    TruncatedGaussianPseudoLikelihood,
    TruncatedGaussianScoreMatching,
)
from vnce_engine.estimators.gaussian_em import GaussianEM
from vnce_engine.estimators.truncated_gaussian import TruncatedGaussianVNCE
from vnce_engine.experiments.graph_recovery import GRAPHS, simulate
from vnce_engine.inference.metrics import edge_roc

FIRST_SEED = 100
# Stronger shrinkage than this hurts on rings, weaker on hubs.
PENALTY = 1.0
# Estimators share no public base class to name here.
METHODS: dict[str, Callable[[], Any]] = {
    "vnce": lambda: TruncatedGaussianVNCE(random_state=0),
    "mle": lambda: TruncatedGaussianMLE(linear="zero", random_state=0),
    "mle-penalised": lambda: TruncatedGaussianMLE(linear="zero", penalty=PENALTY, random_state=0),
    "mle-ridge": lambda: TruncatedGaussianMLE(
        linear="zero", penalty=PENALTY / 3, penalty_kind="ridge", random_state=0
    ),
    "cd": lambda: TruncatedGaussianCD(linear="zero", persistent=False, random_state=0),
    "pcd": lambda: TruncatedGaussianCD(linear="zero", random_state=0),
    "pseudo": lambda: TruncatedGaussianPseudoLikelihood(linear="zero", random_state=0),
    "pseudo-mean": lambda: TruncatedGaussianPseudoLikelihood(
        linear="zero", imputation="mean", random_state=0
    ),
    "pseudo-penalised": lambda: TruncatedGaussianPseudoLikelihood(
        linear="zero", penalty=PENALTY, random_state=0
    ),
    "score": lambda: TruncatedGaussianScoreMatching(linear="zero", random_state=0),
    "score-mean": lambda: TruncatedGaussianScoreMatching(
        linear="zero", imputation="mean", random_state=0
    ),
    "score-zero": lambda: TruncatedGaussianScoreMatching(
        linear="zero", imputation="zero", random_state=0
    ),
    "score-penalised": lambda: TruncatedGaussianScoreMatching(
        linear="zero", penalty=PENALTY, random_state=0
    ),
    "gaussian-em": lambda: GaussianEM(random_state=0),
    "glasso-ebic": lambda: GaussianEM(penalty="ebic", random_state=0),
    "glasso-cv": lambda: GaussianEM(penalty="cv", random_state=0),
}


@dataclass(frozen=True)
class Scores:
    """How well one fit recovered the graph it was drawn from."""

    auc_abs: float
    """Area under the ROC curve, pairs ranked by |K_ij|."""
    auc_signed: float
    """The same, ranked by K_ij."""
    mse: float
    """Mean squared error of K_ij over pairs."""
    seconds: float
    """CPU time of the fit."""
    status: str
    warnings: tuple[str, ...]
    """Their codes."""


def main() -> None:
    """Run the comparison and print its table, cell by cell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=6, help="data sets a line, from seed 100 on")
    parser.add_argument("--only", default=",".join(METHODS), help="methods, comma-separated")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    methods = {name: METHODS[name] for name in arguments.only.split(",")}
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
    fits = [measure(make, graph, fraction, seed) for seed in seeds]
    by_magnitude, signed, error, seconds = np.median(
        [(fit.auc_abs, fit.auc_signed, fit.mse, fit.seconds) for fit in fits], axis=0
    )
    return [
        f"{by_magnitude:.3f}",
        f"{signed:.3f}",
        f"{error:.4f}",
        f"{seconds:.2f}",
        ", ".join(sorted({fit.status for fit in fits})),
    ]


def measure(make: Callable[[], Any], graph: str, fraction: float, seed: int) -> Scores:
    """Fit the estimator that `make` returns to a data set without a `fraction` of its cells."""
    truth, X = simulate(graph, fraction, seed)
    start = time.process_time()
    estimator = make().fit(X)
    seconds = time.process_time() - start
    K = estimator.precision_
    by_magnitude, signed = edge_roc(np.abs(K), truth != 0).auc, edge_roc(K, truth != 0).auc
    assert by_magnitude is not None  # these graphs have edges and gaps
    assert signed is not None
    return Scores(
        auc_abs=by_magnitude,
        auc_signed=signed,
        mse=float(np.mean((K - truth)[np.triu_indices(len(K), k=1)] ** 2)),
        seconds=seconds,
        status=str(estimator.status_),
        warnings=tuple(warning.code for warning in estimator.warnings_),
    )


if __name__ == "__main__":
    main()

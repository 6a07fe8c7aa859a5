"""How often intervals hold the truth where rows depend on each other in clusters.

    python -W ignore -m benchmarks.clusters [--tables 60] [--clusters 150] [--size 3]

Four normal columns about eight standard deviations above zero, of which two are linked (.4), and of
the variance of which a cluster's rows have four fifths in common; a fifth of the cells is missing.
For each estimator, fitted with and without the clusters, and to as many independent rows as there
are clusters, over tables: the shares of intervals of all pairs and of the true edge that hold the
truth, and of edges found that are false, each with its standard error over tables; CPU seconds of a
fit.
"""

import argparse
import time
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray

from vnce_engine import GaussianVNCE, TruncatedGaussianVNCE
from vnce_engine.simulate import mask_completely_at_random

FloatArray = NDArray[np.float64]

LINK, SHARED, MISSING = 0.4, 0.8, 0.2
ESTIMATORS = {"gaussian": GaussianVNCE(), "truncated": TruncatedGaussianVNCE(linear="free")}


def table(num_clusters: int, size: int, seed: int) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return rows of the four columns, and the cluster of each."""
    rng = np.random.default_rng(seed)
    covariance = np.eye(4)
    covariance[0, 1] = covariance[1, 0] = LINK
    labels = np.repeat(np.arange(num_clusters), size)
    shared = rng.multivariate_normal(np.zeros(4), SHARED * covariance, num_clusters)
    own = rng.multivariate_normal(np.zeros(4), (1 - SHARED) * covariance, len(labels))
    return mask_completely_at_random(8.0 + shared[labels] + own, MISSING, rng), labels


def main() -> None:
    """Print a line for each estimator and kind of rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clusters")
    parser.add_argument("--tables", type=int, default=60)
    parser.add_argument("--clusters", type=int, default=150)
    parser.add_argument("--size", type=int, default=3)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print("estimator | rows | all pairs | true edge | false | seconds")
    for (name, model), rows in product(
        ESTIMATORS.items(), ("in clusters", "taken for independent", "independent")
    ):
        lines = []
        for seed in range(chosen.tables):
            size = 1 if rows == "independent" else chosen.size
            X, labels = table(chosen.clusters, size, seed)
            start = time.process_time()
            edges = model.fit(X, clusters=labels if rows == "in clusters" else None).edges_
            seconds = time.process_time() - start
            truth = [LINK if (edge.source, edge.target) == (0, 1) else 0.0 for edge in edges]
            held = [
                edge.lower is not None and edge.upper is not None and edge.lower <= t <= edge.upper
                for edge, t in zip(edges, truth, strict=True)
            ]
            found = sum(edge.selected for edge in edges)
            false = sum(edge.selected and not t for edge, t in zip(edges, truth, strict=True))
            edge_held = held[truth.index(LINK)]
            lines.append((np.mean(held), edge_held, false / max(found, 1), seconds))
        means, errors = np.mean(lines, axis=0), np.std(lines, axis=0) / len(lines) ** 0.5
        told = [f"{m:.3f} ± {e:.3f}" for m, e in zip(means[:3], errors[:3], strict=True)]
        print(" | ".join([name, rows, *told, f"{means[3]:.2f}"]), flush=True)


if __name__ == "__main__":
    main()

"""How sure edges of strongly dependent columns are, by both models' estimators.

    python -m benchmarks.dependence [--tables 5] [--rows 250] [--columns 15] [--correlation 0.8]

Chains of normal columns eight standard deviations above zero, neighbours so much correlated, a
fifth of the cells missing. For each estimator, means over tables: the share of 95 % intervals that
hold the truth, of edges and of other pairs; edges found present, and false ones; the median
standard error; CPU seconds of a fit. The bound at zero plays no part there, so that both have the
same model: what differs is the noise, independent columns or a Gaussian with their correlations,
and from what the last step takes its errors, the likelihood or the noise.
"""

import argparse
import time

import numpy as np
import torch

from vnce_engine import GaussianVNCE, TruncatedGaussianVNCE
from vnce_engine.inference.metrics import scaled_interaction
from vnce_engine.simulate import mask_completely_at_random


def main() -> None:
    """Print a line for each estimator."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dependence")
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--rows", type=int, default=250)
    parser.add_argument("--columns", type=int, default=15)
    parser.add_argument("--correlation", type=float, default=0.8)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    place = np.arange(chosen.columns)
    covariance = chosen.correlation ** np.abs(np.subtract.outer(place, place))
    truth = scaled_interaction(np.linalg.inv(covariance))
    print("estimator | covered: edges | other pairs | found | false | error | seconds")
    for estimator in (TruncatedGaussianVNCE, GaussianVNCE):
        lines = []
        for seed in range(chosen.tables):
            rng = np.random.default_rng([seed, 7])
            X = rng.multivariate_normal(np.full(chosen.columns, 8.0), covariance, chosen.rows)
            start = time.process_time()
            model = estimator().fit(mask_completely_at_random(X, 0.2, rng))
            lines.append((*_judge(model, truth), time.process_time() - start))
        means = " | ".join(f"{mean:.3f}" for mean in np.nanmean(lines, axis=0))
        print(f"{estimator.__name__} | {means}", flush=True)


def _judge(
    model: TruncatedGaussianVNCE | GaussianVNCE, truth: np.ndarray
) -> tuple[float, float, float, float, float]:
    """Return what a fit says of neighbours and of other pairs; NaN where it has no intervals."""
    if model.no_uncertainty_ is not None:
        return (np.nan,) * 5
    is_edge = np.array([edge.target - edge.source == 1 for edge in model.edges_])
    true = np.array([truth[edge.source, edge.target] for edge in model.edges_])
    lower, upper, error = (
        np.array([getattr(edge, name) for edge in model.edges_], dtype=float)
        for name in ("lower", "upper", "standard_error")
    )
    covered = (lower <= true) & (true <= upper)
    present = np.array([edge.verdict == "present" for edge in model.edges_])
    return (
        float(covered[is_edge].mean()),
        float(covered[~is_edge].mean()),
        float(present[is_edge].sum()),
        float(present[~is_edge].sum()),
        float(np.nanmedian(error)),
    )


if __name__ == "__main__":
    main()

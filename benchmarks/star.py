"""How edges of a Gaussian star are ranked where most cells are missing, and what that costs.

    python -m benchmarks.star [--tables 3]

20 columns, 1,000 rows, 70 % missing completely at random. For each estimator, means over tables:
AUC of the size of scaled interactions, their root mean square error, and CPU seconds; of VNCE also
the best objective of held-out rows, nats a row.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from vnce_engine import GaussianEM, GaussianScoreMatching, GaussianVNCE
from vnce_engine.inference.metrics import scaled_interaction
from vnce_engine.simulate import mask_completely_at_random

FloatArray = NDArray[np.float64]

_COLUMNS, _ROWS, _MISSING, _WEIGHT = 20, 1_000, 0.7, 0.5
_ESTIMATORS: dict[str, Callable[[], Any]] = {
    "VNCE, default": GaussianVNCE,
    "VNCE, ridge by held-out rows": lambda: GaussianVNCE(penalty_kind="ridge"),
    "VNCE, ridge of 1": lambda: GaussianVNCE(penalty_kind="ridge", penalty=1.0),
    "marginal score matching, ridge by held-out rows": lambda: GaussianScoreMatching(penalty="cv"),
    "marginal score matching, ridge of 1": lambda: GaussianScoreMatching(penalty=1.0),
    "maximum likelihood": GaussianEM,
}


def main() -> None:
    """Print a line for each estimator."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.star")
    parser.add_argument("--tables", type=int, default=3)
    num_tables = parser.parse_args().tables
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print("estimator | AUC | error | held out | CPU seconds")
    for name, make in _ESTIMATORS.items():
        figures = np.array([_figures(make, seed) for seed in range(num_tables)])
        areas = " ".join(f"{area:.3f}" for area in figures[:, 0])
        _, error, held_out, seconds = figures.mean(axis=0)
        print(f"{name} | {areas} | {error:.4f} | {held_out:.4f} | {seconds:.1f}", flush=True)


def _figures(make: Callable[[], Any], seed: int) -> tuple[float, float, float, float]:
    K = np.eye(_COLUMNS)
    K[0, 1:] = K[1:, 0] = _WEIGHT
    K[0, 0] = 1 + (_COLUMNS - 1) * _WEIGHT**2
    rng = np.random.default_rng(seed)
    X = rng.multivariate_normal(np.zeros(_COLUMNS), np.linalg.inv(K), _ROWS)
    X = mask_completely_at_random(X, _MISSING, rng)
    start = time.process_time()
    fitted = make().fit(X)
    seconds = time.process_time() - start
    upper = np.triu_indices(_COLUMNS, 1)
    estimate, truth = fitted.scaled_interaction_[upper], scaled_interaction(K)[upper]
    area = float(roc_auc_score(truth != 0, np.abs(estimate)))
    error = float(np.sqrt(np.mean((estimate - truth) ** 2)))
    path = fitted.penalty_path_ if isinstance(fitted, GaussianVNCE) else ()
    held_out = max((step.criterion for step in path), default=float("nan"))
    return area, error, held_out, seconds


if __name__ == "__main__":
    main()

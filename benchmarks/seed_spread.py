"""What the spread of an answer over seeds is made of: noise, or choices.

    python -m benchmarks.seed_spread

Wine and diabetes, five seeds, by noise rows a data row: the default, and the adaptive penalty at a
strength of 1, which chooses nothing. SD of each partial correlation over seeds, times sqrt(n):
median and 95th percentile over pairs.
"""

from itertools import product
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_diabetes, load_wine

from vnce_engine import TruncatedGaussianVNCE

_TABLES = {"wine": load_wine().data, "diabetes": load_diabetes(scaled=False).data}
_NOISE_RATIOS = (10, 100)
_OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "adaptive, strength 1": {"penalty_kind": "adaptive", "penalty": 1.0},
}
_SEEDS = range(5)


def main() -> None:
    """Print a line for each table, noise ratio and penalty."""
    torch.set_num_threads(1)
    for (table, X), ratio, (name, options) in product(
        _TABLES.items(), _NOISE_RATIOS, _OPTIONS.items()
    ):
        upper = np.triu_indices(X.shape[1], 1)
        answers = [
            TruncatedGaussianVNCE(random_state=seed, noise_ratio=ratio, **options)
            .fit(X)
            .partial_correlation_[upper]
            for seed in _SEEDS
        ]
        spread = np.std(answers, axis=0, ddof=1) * np.sqrt(len(X))
        median, high = np.quantile(spread, [0.5, 0.95])
        print(f"{table}, {ratio} noise rows, {name}: {median:.2f} / {high:.2f}", flush=True)


if __name__ == "__main__":
    main()

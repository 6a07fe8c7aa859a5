"""A small table with missing cells, and fits that take milliseconds."""

from typing import Any

import numpy as np

from vnce_engine import TruncatedGaussianNCE, TruncatedGaussianVNCE
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)

ESTIMATORS = [TruncatedGaussianVNCE, TruncatedGaussianNCE]
# Everything chosen beforehand: one short fit.
QUICK: dict[str, Any] = {"linear": "zero", "penalty": 0.5, "random_state": 0}


def table(n: int = 120, d: int = 4, fraction: float = 0.2, seed: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = sample_truncated_gaussian(ring_precision(d, rng), n, rng)
    return mask_completely_at_random(X, fraction, rng)

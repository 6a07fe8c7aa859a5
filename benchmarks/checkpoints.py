"""What an interruption costs: the longest times between two saves of a fit, and their bytes.

    python -m benchmarks.checkpoints            1,000 rows of 20 columns, 30 % missing
    python -m benchmarks.checkpoints --columns 50 --only vnce,em

Seconds are CPU seconds of one thread, so that other work on the machine does not count.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import vnce_engine
from vnce_engine import simulate
from vnce_engine.runtime.checkpoint import Checkpoint, Saved, Stage

_L1 = {"penalty_kind": "l1", "linear": "zero"}
_FITS: dict[str, Callable[..., Any]] = {
    "vnce": vnce_engine.TruncatedGaussianVNCE,
    "vnce-ebic": partial(vnce_engine.TruncatedGaussianVNCE, selection="ebic", **_L1),
    "vnce-stability": partial(
        vnce_engine.TruncatedGaussianVNCE, selection="stability", n_subsamples=10, **_L1
    ),
    "paper": partial(vnce_engine.TruncatedGaussianVNCE, preset="paper"),
    "natural": vnce_engine.TruncatedGaussianMLE,
    "stochastic": partial(vnce_engine.TruncatedGaussianMLE, method="stochastic", max_iter=5),
    "cd": vnce_engine.TruncatedGaussianCD,
    "pseudo-likelihood": vnce_engine.TruncatedGaussianPseudoLikelihood,
    "score-matching": vnce_engine.TruncatedGaussianScoreMatching,
    "em-cv": partial(vnce_engine.GaussianEM, penalty="cv"),
    "gaussian-score-matching": partial(vnce_engine.GaussianScoreMatching, penalty="cv"),
}


def main() -> None:
    """Print a line for each fit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkpoints")
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--only", default=",".join(_FITS), help="fits, comma-separated")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    K = simulate.ring_precision(options.columns, rng)
    X = simulate.sample_truncated_gaussian(K, options.rows, rng)
    X = simulate.mask_completely_at_random(X, 0.3, rng)
    for name in options.only.split(","):
        print(f"{name}: {_cost(_FITS[name](random_state=0), X)}", flush=True)


def _cost(estimator: Any, X: np.ndarray) -> str:
    checkpoint, save = Checkpoint(), Stage.save
    times = [time.process_time()]

    def timed_save(stage: Stage, value: Saved) -> None:
        save(stage, value)
        times.append(time.process_time())

    with patch.object(Stage, "save", timed_save):
        estimator.fit(X, checkpoint=checkpoint)
    times.append(time.process_time())
    longest, whole = max(np.diff(times)), times[-1] - times[0]
    return f"{longest:.2f} s of {whole:.1f}, {len(checkpoint.dump()) / 1e6:.2f} MB at its end"


if __name__ == "__main__":
    main()

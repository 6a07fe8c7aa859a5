"""Every estimator that a job may name goes on from what an interrupted attempt had done."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.reports import FitStep
from worker.jobs.estimation import EstimationRequest, estimate
from worker.jobs.failures import FitCancelledError

MakeRequest = Callable[..., EstimationRequest]
GAUSSIAN = {"kind": "gaussian"}
TRUNCATED = {"kind": "truncated-gaussian", "linear": "zero"}
TO_THE_LAST_BIT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (TRUNCATED, {"kind": "vnce", "preset": "paper", "penalty": None, "max_iter": 10}),
    (TRUNCATED, {"kind": "mle"}),
    (TRUNCATED, {"kind": "mle", "method": "stochastic", "max_iter": 3}),
    (TRUNCATED, {"kind": "contrastive-divergence", "max_iter": 5}),
    (TRUNCATED, {"kind": "pseudo-likelihood"}),
    (TRUNCATED, {"kind": "score-matching"}),
    (GAUSSIAN, {"kind": "gaussian-em", "penalty": "ebic"}),
]
TO_THE_TOLERANCE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (TRUNCATED, {"kind": "vnce", "penalty": 1.0, "tol": 1e-3}),
    (TRUNCATED, {"kind": "nce", "penalty": 1.0, "tol": 1e-3}),
    (GAUSSIAN, {"kind": "vnce", "penalty": 1.0, "tol": 1e-3}),
    (GAUSSIAN, {"kind": "nce", "penalty": 1.0, "tol": 1e-3}),
]


class Attempt:
    """Hears of a fit's steps, and stops it after so many."""

    def __init__(self, num_steps: int | None = None) -> None:
        self.num_heard = 0
        self.stored = b""
        self._num_steps = num_steps

    def __call__(self, step: FitStep) -> bool:
        if step.checkpoint is None:  # of the worker's own stages
            return False
        self.num_heard += 1
        self.stored = step.checkpoint.dump()
        return self.num_heard == self._num_steps


def whole_and_resumed(request: EstimationRequest, share: float) -> tuple[Any, Any]:
    """Return the documents of an estimation, and of one that went on from `share` of its steps."""
    attempt = Attempt()
    whole = estimate(request, attempt).document
    assert not whole.timing.resumed
    cut = Attempt(int(share * attempt.num_heard))
    with pytest.raises(FitCancelledError):
        estimate(request, cut)
    again = replace(request, checkpoint=Checkpoint.load(cut.stored))
    return whole, estimate(again, Attempt()).document


@pytest.mark.parametrize(("model", "estimator"), TO_THE_LAST_BIT, ids=str)
def test_the_numbers_are_the_same_to_the_last_bit_and_the_result_says_that_it_went_on(
    make_request: MakeRequest, model: dict[str, Any], estimator: dict[str, Any]
) -> None:
    whole, resumed = whole_and_resumed(make_request(model=model, estimator=estimator), 0.5)
    assert resumed.timing.resumed
    own = {"timing"}
    assert resumed.model_dump(exclude=own) == whole.model_dump(exclude=own)


@pytest.mark.parametrize(("model", "estimator"), TO_THE_TOLERANCE, ids=str)
def test_the_numbers_are_the_same_to_the_tolerance_and_the_result_says_that_it_went_on(
    make_request: MakeRequest, model: dict[str, Any], estimator: dict[str, Any]
) -> None:
    whole, resumed = whole_and_resumed(make_request(model=model, estimator=estimator), 0.9)
    assert resumed.timing.resumed
    K, expected = np.array(resumed.precision), np.array(whole.precision)
    scale = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
    # Each of the two ends about the tolerance away from the same fixed point, or nearer.
    assert np.abs((K - expected) / scale).max() < 4 * estimator["tol"]

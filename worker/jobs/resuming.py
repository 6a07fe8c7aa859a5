"""A fit that goes on from where an interrupted attempt was, if it can."""

import logging
from collections.abc import Callable
from typing import TypeVar

from vnce_engine.runtime.checkpoint import Checkpoint, UnusableCheckpointError
from vnce_engine.runtime.progress import FitCancelledError as EngineCancelledError
from worker.jobs.failures import FitCancelledError

Fit = TypeVar("Fit")

logger = logging.getLogger("worker")


def resume_or_restart(
    fit: Callable[[Checkpoint], Fit], checkpoint: Checkpoint | None
) -> tuple[Fit, bool]:
    """Return what `fit` returns, and whether it went on from the earlier attempt's `checkpoint`.

    Raises `FitCancelledError` where the engine does.

    Another machine's arithmetic may have transformed the table a little differently: the checkpoint
    is then of another fit, which begins anew.
    """
    try:
        kept = checkpoint or Checkpoint()
        return _fitted(fit, kept), kept.num_taken > 0
    except UnusableCheckpointError as error:
        logger.warning("the fit begins anew: %s", error)
        return _fitted(fit, Checkpoint()), False


def _fitted(fit: Callable[[Checkpoint], Fit], checkpoint: Checkpoint) -> Fit:
    try:
        return fit(checkpoint)
    except EngineCancelledError as cancelled:
        raise FitCancelledError from cancelled

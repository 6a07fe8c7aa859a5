"""A fit that goes on from where an interrupted attempt was, if it can."""

import logging
from collections.abc import Callable
from typing import TypeVar

from vnce_engine.runtime.journal import Journal, UnusableJournalError

Fit = TypeVar("Fit")

logger = logging.getLogger("worker")


def go_on_or_begin_anew(fit: Callable[[Journal], Fit], journal: Journal | None) -> tuple[Fit, bool]:
    """Return what `fit` returns, and whether it went on from the earlier attempt's `journal`.

    Another machine's arithmetic may have transformed the table a little differently: the journal
    is then of another fit, which begins anew.
    """
    try:
        kept = journal or Journal()
        return fit(kept), kept.num_taken > 0
    except UnusableJournalError as error:
        logger.warning("the fit begins anew: %s", error)
        return fit(Journal()), False

"""Waiting for a database that is away for a while."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from service.db.database import UNREACHABLE
from service.db.storage_full import is_storage_full

T = TypeVar("T")

FIRST_PAUSE_SECONDS = 0.1
# Short, so that a lease is renewed before the reaper judges it by the database's return.
LONGEST_PAUSE_SECONDS = 1.0

logger = logging.getLogger("worker")


def retry_while_away(operation: Callable[[], T], seconds: float) -> T:
    """Return what `operation` returns, trying again while the database is away.

    `operation` is a whole transaction. After `seconds` the database's error is raised; one that
    has no room left is not waited for.
    """
    deadline = time.monotonic() + seconds
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return operation()
        except UNREACHABLE as error:
            if is_storage_full(error) or time.monotonic() + pause > deadline:
                raise
            logger.warning("the database does not answer, trying again: %s", error)
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

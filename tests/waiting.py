"""Waiting for what another process or thread does, as long as a busy machine may need."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# For what ends in a moment on an idle machine; a test that waits as long has failed.
PATIENCE_SECONDS = 240.0


def wait_for(read: Callable[[], T | None], what: object = "it") -> T:
    """Return the first answer of `read` that is not None, False or empty."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (answer := read()):
        assert time.monotonic() < deadline, f"waited {PATIENCE_SECONDS} seconds for {what}"
        time.sleep(0.02)
    return answer

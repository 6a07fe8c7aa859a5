"""Waiting for what another process or thread does, as long as a busy machine may need."""

import time
from collections.abc import Callable
from pathlib import Path
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


def is_running(pid: int) -> bool:
    """Return whether there is a process of this number, not only its exit status."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"

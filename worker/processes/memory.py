"""How much memory this process holds."""

import os
from pathlib import Path

_STATM = Path("/proc/self/statm")


def resident_bytes() -> int | None:
    """Return the resident memory of this process, libraries included; None where only Linux says.

    Pages that a forked process still shares with its parent count in both.
    """
    try:
        fields = _STATM.read_text().split()
    except FileNotFoundError:
        return None
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

"""How a worker's parent process, or a dispatcher's loop, shows that it does its round."""

import mmap
import struct
import time

# With the time after which a process is lost that tells nothing, this stays below 15 seconds.
SILENT_SECONDS = 4.0
_TIME = struct.Struct("d")


class Pulse:
    """The time of the latest round, in memory that forked children share."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _TIME.size)

    def touch(self) -> None:
        """Say that a round has been done."""
        # The monotonic clock is the machine's: children and parent read the same.
        _TIME.pack_into(self._memory, 0, time.monotonic())

    def is_alive(self) -> bool:
        """Return whether a round was done lately."""
        latest: float = _TIME.unpack_from(self._memory, 0)[0]
        return latest > 0 and time.monotonic() - latest < SILENT_SECONDS

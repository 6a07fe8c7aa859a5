"""How the worker's parent process tells its children that it was asked to stop."""

import mmap


class ShutdownFlag:
    """A flag in memory that forked children share; a killed child cannot leave it locked."""

    def __init__(self) -> None:
        self._byte = mmap.mmap(-1, 1)

    def set(self) -> None:
        """Raise the flag, in every process."""
        self._byte[0] = 1

    def is_set(self) -> bool:
        """Return whether the flag was raised in any process."""
        return self._byte[0] == 1

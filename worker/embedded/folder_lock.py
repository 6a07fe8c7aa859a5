"""One service a data folder: a second one would share its database and its queue."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE_NAME = "lock"


class FolderInUseError(RuntimeError):
    """Raised when another process holds the folder."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold `folder` for the body; the kernel lets go of it even if this process is killed.

    Raises `FolderInUseError` naming the process that holds it.
    """
    with (folder / FILE_NAME).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise FolderInUseError(
                f"{folder} is in use by another `vnce serve`, process {file.read().strip()}. "
                "Stop it first, or name another folder."
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield

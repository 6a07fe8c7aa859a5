"""One service a data folder: a second one would share its database and its queue."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from worker.embedded.serve_error import ServeError

FILE_NAME = "lock"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold `folder` for the body; the kernel lets go of it even if this process is killed.

    Raises `ServeError` naming the process that holds it.
    """
    with (folder / FILE_NAME).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise ServeError(
                f"{folder} is in use by another `vnce serve`, process {file.read().strip()}. "
                "Stop it first, or name another folder."
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield

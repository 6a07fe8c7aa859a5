"""Reads uploads in processes of their own, so that no file harms the API; see `reader_process`."""

import atexit
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import BinaryIO

from pydantic import ValidationError

from service.datasets.reader_protocol import (
    STARTED,
    Mistake,
    ReadAnswer,
    ReaderBounds,
    Reading,
    ReadRequest,
    Refusal,
    receive_all,
)
from service.datasets.refusals import too_large, unreadable
from service.http.problems import ProblemCode, ProblemError

# A reader ends itself in time; this much later it is taken for lost.
_GRACE_SECONDS = 10
_STOP_SECONDS = 10
logger = logging.getLogger("service")


@dataclass(frozen=True)
class ReadUpload:
    """What an upload was read as, and its numbers as Parquet files."""

    reading: Reading
    table: BinaryIO
    # The censored and unknown cells, `cells.CELL_SCHEMA`; None if there are none.
    cells: BinaryIO | None


class ReaderMistakeError(RuntimeError):
    """Raised with a reader's traceback: the mistake is ours."""


class Readers:
    """The readers that one process shares; what forks them starts with the first upload."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None

    @contextmanager
    def read(self, upload: BinaryIO, request: ReadRequest) -> Iterator[ReadUpload]:
        """Yield what `upload`, a temporary file, holds.

        Raises `ProblemError` for what cannot be read, or not within the bounds.
        """
        # Unbuffered: the reader moves their positions, which a buffer would not notice.
        with TemporaryFile(buffering=0) as table, TemporaryFile(buffering=0) as cells:
            with _lent(upload), _lent(table), _lent(cells):
                reading = self._converse(request, [upload, table, cells])
            yield ReadUpload(reading, table, cells if reading.has_cells else None)

    def close(self) -> None:
        """End what forks readers; those that read go on to their end."""
        with self._lock:
            self._stop()

    def _converse(self, request: ReadRequest, files: Sequence[BinaryIO]) -> Reading:
        began = time.monotonic()
        # What forks readers may have ended with the request in its hands.
        said = self._ask(request, files) or self._ask(request, files)
        if not said:
            raise _unavailable()
        try:
            outcome = ReadAnswer.model_validate_json(said.removeprefix(STARTED)).outcome
        except ValidationError:
            raise _lost(request.bounds, time.monotonic() - began) from None
        match outcome:
            case Reading():
                return outcome
            case Refusal():
                raise outcome.problem()
            case Mistake():
                raise ReaderMistakeError(outcome.traceback)

    def _ask(self, request: ReadRequest, files: Sequence[BinaryIO]) -> bytes:
        """Return what a reader has said, all of it or until it was lost; nothing if none began."""
        ours, theirs = socket.socketpair()
        with ours:
            ours.settimeout(request.bounds.seconds + _GRACE_SECONDS)
            with theirs:
                self._hand_over([*(file.fileno() for file in files), theirs.fileno()])
            with suppress(OSError):
                ours.sendall(request.model_dump_json().encode())
                ours.shutdown(socket.SHUT_WR)
            return receive_all(ours)

    def _hand_over(self, files: list[int]) -> None:
        with self._lock:
            if self._control is not None:
                try:
                    socket.send_fds(self._control, [STARTED], files)
                    return
                except OSError:  # what forks readers is gone
                    self._stop()
            self._server, self._control = _start()
            atexit.register(self.close)
            # Should it end at once, the conversation tells.
            with suppress(OSError):
                socket.send_fds(self._control, [STARTED], files)

    def _stop(self) -> None:
        if self._server is None or self._control is None:
            return
        atexit.unregister(self.close)
        self._control.close()
        self._server.wait(_STOP_SECONDS)
        self._server = self._control = None


def _start() -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    environment = {name: value for name, value in os.environ.items() if not _is_ours(name)}
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", "service.datasets.reader_process"],
            stdin=theirs.fileno(),
            # The system's allocator gives memory back, and counts as the limit does.
            env={**environment, "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"},
        )
    return server, ours


def _is_ours(name: str) -> bool:
    """Whether a variable may hold a secret, which readers do not need."""
    return name.startswith(("VNCE_", "PG"))


@contextmanager
def _lent(file: BinaryIO) -> Iterator[None]:
    """Let another process move the position that it shares in `file`, and put it back."""
    number = file.fileno()  # from here on it is a file of the operating system
    file.flush()
    position = os.lseek(number, 0, os.SEEK_CUR)
    try:
        yield
    finally:
        os.lseek(number, position, os.SEEK_SET)


def _lost(bounds: ReaderBounds, seconds: float) -> ProblemError:
    if seconds >= bounds.seconds:
        return too_large(
            "Reading the file takes longer than one upload may.", "reader_seconds", bounds.seconds
        )
    logger.warning("a file ended the process that read it")
    return unreadable(
        "The file cannot be read: it is damaged in a way that ended the process which read it. "
        "Nothing was stored."
    )


def _unavailable() -> ProblemError:
    return ProblemError(
        ProblemCode.UNAVAILABLE,
        "No process could be started to read the file; try again in 5 seconds.",
        headers={"Retry-After": "5"},
    )

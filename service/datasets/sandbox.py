"""Reads uploads in processes of their own, bounded in memory and time.

Native code that decodes strangers' files may crash, hang or fill the memory. Here this ends one
process, which holds no connection and no password, and the API answers that the file cannot be
read. `multiprocessing`'s fork server forks one for each upload; it exists on Linux and macOS, and
memory is bounded on Linux alone.
"""

import logging
import multiprocessing
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from multiprocessing.reduction import DupFd
from tempfile import TemporaryFile
from typing import Any, BinaryIO, NoReturn, Self

import pyarrow as pa
from pydantic import BaseModel, ValidationError

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.readers.refusals import too_large, unreadable
from service.datasets.reading import ReadDataset, read_dataset
from service.datasets.schemas import DatasetSummary
from service.datasets.stored_table import to_parquet
from service.datasets.vocabulary import DatasetFormat
from service.db.storage_full import is_storage_full
from service.http.problems import ProblemCode, ProblemError, ProblemItem
from service.settings import Settings

_PREVIEW_ROWS = 5
# A reader ends itself in time; this much later it is killed.
_GRACE_SECONDS = 10
# What the fork server imports once, in this order, before it forks readers.
_PRELOADED = [
    "service.datasets.reader_environment",
    "service.datasets.sandbox",
    "service.datasets.reader_warm_up",
]
logger = logging.getLogger("service")
# `multiprocessing` polls, as it starts a process, all that it has started: not in two threads.
_processes = threading.Lock()


@dataclass(frozen=True)
class ReaderBounds:
    """What reading one upload may take."""

    memory_bytes: int
    seconds: int

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the bounds that the operator has set."""
        return cls(settings.reader_memory_bytes, settings.reader_seconds)


@dataclass(frozen=True)
class ReadRequest:
    """How to read a file."""

    options: ReadOptions
    limits: ReadLimits
    bounds: ReaderBounds

    def __post_init__(self) -> None:
        # Of a class derived from it each reader would import the module, which takes seconds.
        assert type(self.options) is ReadOptions


class Reading(BaseModel):
    """What a file was read as."""

    format: DatasetFormat
    summary: DatasetSummary
    first_rows: list[list[float | None]]
    has_cells: bool


@dataclass(frozen=True)
class ReadUpload:
    """What an upload was read as, and its numbers as Parquet files."""

    reading: Reading
    table: BinaryIO
    # The censored and unknown cells, `cells.CELL_SCHEMA`; None if there are none.
    cells: BinaryIO | None


class ReaderMistakeError(RuntimeError):
    """Raised with a reader's traceback: the mistake is ours."""


class _Refusal(BaseModel):
    """Why a file was not read."""

    code: ProblemCode
    detail: str
    errors: list[ProblemItem]


class _Mistake(BaseModel):
    """An exception of ours, as it is to be logged."""

    traceback: str


class _Answer(BaseModel):
    """How reading ended, as JSON: nothing is unpickled that a stranger's file may have made."""

    outcome: Reading | _Refusal | _Mistake


@contextmanager
def read_upload(upload: BinaryIO, request: ReadRequest) -> Iterator[ReadUpload]:
    """Yield what `upload`, a temporary file, holds.

    Raises `ProblemError` for what cannot be read, or not within the bounds.
    """
    # Unbuffered: the reader moves their positions, which a buffer would not notice.
    with TemporaryFile(buffering=0) as table, TemporaryFile(buffering=0) as cells:
        with _position_kept(upload), _position_kept(table), _position_kept(cells):
            outcome = _outcome_of_reader(request, [upload, table, cells])
        match outcome:
            case Reading():
                yield ReadUpload(outcome, table, cells if outcome.has_cells else None)
            case _Refusal():
                raise ProblemError(outcome.code, outcome.detail, errors=outcome.errors)
            case _Mistake():
                raise ReaderMistakeError(outcome.traceback)


def _outcome_of_reader(
    request: ReadRequest, files: Sequence[BinaryIO]
) -> Reading | _Refusal | _Mistake:
    process, answers = _start(request, files)
    said = b""
    with answers, suppress(EOFError, OSError):
        if answers.poll(request.bounds.seconds + _GRACE_SECONDS):
            said = answers.recv_bytes()
        else:
            process.kill()
    with _processes:
        process.join()
        status = process.exitcode
        process.close()
    try:
        return _Answer.model_validate_json(said).outcome
    except ValidationError:
        raise _lost(request.bounds, status) from None


def _start(
    request: ReadRequest, files: Sequence[BinaryIO]
) -> tuple[ForkServerProcess, "Connection[Any, Any]"]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    # That the fork server is gone may show only when it is asked; then a new one is started.
    for _ in range(2):
        answers, theirs = context.Pipe(duplex=False)
        arguments = (theirs, request, *map(_OpenFile, files))
        with theirs, _processes:
            process = context.Process(target=_read, args=arguments, daemon=True)
            try:
                process.start()
            except (EOFError, OSError):
                logger.warning("no process could be started to read a file", exc_info=True)
                answers.close()
            else:
                return process, answers
    raise ProblemError(
        ProblemCode.UNAVAILABLE,
        "No process could be started to read the file; try again in 5 seconds.",
        headers={"Retry-After": "5"},
    )


class _OpenFile:
    """An open file, which goes along with the arguments of a process as its number there."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return _number, (DupFd(self._file.fileno()),)


def _number(handle: Any) -> int:
    number: int = handle.detach()
    return number


@contextmanager
def _position_kept(file: BinaryIO) -> Iterator[None]:
    """Let another process move the position that it shares in `file`, and put it back."""
    number = file.fileno()  # from here on it is a file of the operating system
    file.flush()
    position = os.lseek(number, 0, os.SEEK_CUR)
    try:
        yield
    finally:
        os.lseek(number, position, os.SEEK_SET)


def _lost(bounds: ReaderBounds, status: int | None) -> ProblemError:
    if status in (-signal.SIGALRM, -signal.SIGKILL):
        return too_large(
            "Reading the file takes longer than one upload may.", "reader_seconds", bounds.seconds
        )
    logger.warning("a file ended the process that read it")
    return unreadable(
        "The file cannot be read: it is damaged in a way that ended the process which read it. "
        "Nothing was stored."
    )


def _read(
    answers: "Connection[Any, Any]", request: ReadRequest, upload: int, table: int, cells: int
) -> NoReturn:
    """Read the upload, answer, and end: the whole life of a reader."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the API's to answer
    _bound(request.bounds)
    answer = _Answer(outcome=_outcome(request, upload, table, cells))
    answers.send_bytes(answer.model_dump_json().encode())
    os._exit(0)


def _bound(bounds: ReaderBounds) -> None:
    # Without a handler the signal ends the process, whatever native code is doing.
    signal.alarm(bounds.seconds)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # elsewhere this limit counts nothing or is refused
        resource.setrlimit(resource.RLIMIT_DATA, (bounds.memory_bytes, bounds.memory_bytes))


def _outcome(
    request: ReadRequest, upload: int, table: int, cells: int
) -> Reading | _Refusal | _Mistake:
    try:
        with open(upload, "rb") as file:
            dataset = read_dataset(file, request.options, request.limits)
        _write(table, dataset.table)
        if dataset.cells.num_rows:
            _write(cells, dataset.cells)
        return _described(dataset)
    except ProblemError as problem:
        return _refusal(problem)
    except MemoryError:
        pass  # what filled the memory is freed before the answer is made
    except OSError as error:
        if not is_storage_full(error):
            return _Mistake(traceback=traceback.format_exc())
        return _refusal(ProblemError(ProblemCode.STORAGE_FULL, "No room to store the table."))
    except Exception:  # noqa: BLE001 - the last line of a child process: its parent, the API, raises and logs what it is sent
        return _Mistake(traceback=traceback.format_exc())
    return _refusal(
        too_large(
            "Reading the table takes more memory than one upload may have.",
            "reader_memory_bytes",
            request.bounds.memory_bytes,
        )
    )


def _refusal(problem: ProblemError) -> _Refusal:
    return _Refusal(code=problem.code, detail=problem.detail, errors=problem.errors)


def _write(file_number: int, table: pa.Table) -> None:
    with open(file_number, "wb") as file:
        file.write(to_parquet(table))


def _described(dataset: ReadDataset) -> Reading:
    columns = [column.to_pylist() for column in dataset.table.slice(0, _PREVIEW_ROWS).columns]
    return Reading(
        format=dataset.format,
        summary=dataset.summary,
        first_rows=[list(row) for row in zip(*columns, strict=True)],
        has_cells=dataset.cells.num_rows > 0,
    )

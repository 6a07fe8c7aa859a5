"""`python -m service.datasets.reader_process`: forks a process for each upload that is read.

Native code that decodes strangers' files may crash, hang or fill the memory. Here this ends one
process, which holds no connection and no secret, and the API answers that the file cannot be read.
The program itself reads nothing but a table of its own, once, so that what the first reading sets
up (0.2 s) is there for all; then it forks.
"""

import os
import resource
import signal
import socket
import sys
import traceback
from contextlib import suppress
from typing import NoReturn

import pyarrow as pa

from service.datasets.options import ReadLimits, ReadOptions
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
from service.datasets.reading import ReadDataset, read_dataset
from service.datasets.refusals import too_large
from service.datasets.stored_table import to_parquet
from service.db.storage_full import is_storage_full
from service.http.problems import ProblemCode, ProblemError

_PREVIEW_ROWS = 5


def main() -> None:
    """Fork a reader for every hand-over on standard input, a socket, until its other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the API's to answer: it then closes the socket
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for readers
    pa.set_cpu_count(1)
    _warm_up()
    with socket.socket(fileno=sys.stdin.fileno()) as control:
        while True:
            message, files, _, _ = socket.recv_fds(control, 1, 4)
            if not message:
                return
            # Without room for another process the conversation closes before it has started.
            with suppress(BlockingIOError):
                if os.fork() == 0:
                    control.close()  # or it would seem that somebody still listens after our end
                    _converse(*files)
            for file in files:
                os.close(file)


def _warm_up() -> None:
    limits = ReadLimits(max_cells=100, max_columns=10, max_name_length=10, max_decoded_bytes=10_000)
    dataset = read_dataset(b"a,b\n1,<2\n3,NA\n", ReadOptions(), limits)
    read_dataset(to_parquet(dataset.table), ReadOptions(), limits)


def _converse(upload: int, table: int, cells: int, conversation: int) -> NoReturn:
    """Read the upload that the request on the conversation describes, answer, and end."""
    try:
        with socket.socket(fileno=conversation) as connection:
            connection.sendall(STARTED)
            request = ReadRequest.model_validate_json(receive_all(connection))
            _bound(request.bounds)
            answer = ReadAnswer(outcome=_outcome(request, upload, table, cells))
            connection.sendall(answer.model_dump_json().encode())
    finally:
        os._exit(0)


def _bound(bounds: ReaderBounds) -> None:
    # Without a handler the signal ends the process, whatever native code is doing.
    signal.alarm(bounds.seconds)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # elsewhere this limit counts nothing or is refused
        resource.setrlimit(resource.RLIMIT_DATA, (bounds.memory_bytes, bounds.memory_bytes))


def _outcome(
    request: ReadRequest, upload: int, table: int, cells: int
) -> Reading | Refusal | Mistake:
    try:
        with open(upload, "rb") as file:
            dataset = read_dataset(file, request.options, request.limits)
        _write(table, dataset.table)
        if dataset.cells.num_rows:
            _write(cells, dataset.cells)
        return _described(dataset)
    except ProblemError as problem:
        return Refusal.of(problem)
    except MemoryError:
        pass  # what filled the memory is freed before the answer is made
    except OSError as error:
        if not is_storage_full(error):
            return Mistake(traceback=traceback.format_exc())
        return Refusal.of(ProblemError(ProblemCode.STORAGE_FULL, "No room to store the table."))
    except Exception:  # noqa: BLE001 - sent to the API, which logs it; raised, it would be lost
        return Mistake(traceback=traceback.format_exc())
    return Refusal.of(
        too_large(
            "Reading the table takes more memory than one upload may have.",
            "reader_memory_bytes",
            request.bounds.memory_bytes,
        )
    )


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


if __name__ == "__main__":
    main()

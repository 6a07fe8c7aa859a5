"""Uploads are read in processes of their own: bounded in memory and time, and free to die."""

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.sandbox import ReaderBounds, ReadRequest, ReadUpload, read_upload
from service.http.problems import ProblemError
from service.settings import Settings
from tests.waiting import wait_for

TABLE = b"a,b\n1,2\n<3,\n"
BOUNDS = ReaderBounds(memory_bytes=2**29, seconds=60)
# A million bounds, no two alike: seconds of work.
SLOW = b"a\n" + b"\n".join(b"<%d" % i for i in range(1_000_000))
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


@contextmanager
def reading(content: bytes, bounds: ReaderBounds = BOUNDS) -> Iterator[ReadUpload]:
    limits = ReadLimits.from_settings(Settings(max_decoded_bytes=2**40))
    request = ReadRequest(options=ReadOptions(), limits=limits, bounds=bounds)
    with SpooledTemporaryFile(100) as file:
        file.write(content)
        with read_upload(file, request) as read:
            yield read
            assert file.tell() == len(content)


def refusal(content: bytes, bounds: ReaderBounds = BOUNDS) -> ProblemError:
    with pytest.raises(ProblemError) as caught, reading(content, bounds):
        pass
    return caught.value


def parquet(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def children(process: int) -> list[int]:
    """Return the processes that one has forked."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for file in tasks for child in file.read_text().split()]


def fork_server() -> int:
    """Return the process that forks readers, once it has read something."""
    with reading(TABLE):
        pass
    (server,) = (
        child
        for child in children(os.getpid())
        if b"forkserver" in Path(f"/proc/{child}/cmdline").read_bytes() and not _is_zombie(child)
    )
    return server


def _status(process: int) -> list[str]:
    """Return what the kernel tells of a process, from its state on."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


@pytest.mark.parametrize("content", [TABLE, TABLE + b"5,6\n" * 1000], ids=["memory", "disk"])
def test_a_table_and_its_cells_come_back_as_files(content: bytes) -> None:
    with reading(content) as read:
        assert read.reading.first_rows[:2] == [[1.0, 2.0], [None, None]]
        assert pq.read_table(pa.BufferReader(read.table.read()))["a"].to_pylist()[:2] == [1.0, None]
        assert read.cells is not None
        assert pq.read_table(pa.BufferReader(read.cells.read()))["upper"].to_pylist() == [3.0]


def test_a_refusal_comes_back_with_its_places() -> None:
    problem = refusal(b"a,b\n1,x\n")
    assert (problem.status, problem.errors[0].column) == (422, "b")


@pytest.mark.slow
@linux_only
def test_a_text_that_unfolds_beyond_the_memory_of_a_reader_is_refused() -> None:
    table = pa.table({"x": ["1" * 150_000_000, "2"], "y": [1, 2]})
    content = parquet(table, compression="zstd", use_dictionary=False)
    assert len(content) < 20_000
    problem = refusal(content, ReaderBounds(memory_bytes=2**28, seconds=60))
    assert problem.status == 413
    assert "VNCE_READER_MEMORY_BYTES" in problem.detail


def arrow(table: pa.Table, compression: str | None = None) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.mark.slow
@linux_only
@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_an_arrow_file_that_unfolds_beyond_the_memory_of_a_reader_is_refused(
    compression: str,
) -> None:
    content = arrow(pa.table({"x": ["1" * 300_000_000, "2"], "y": [1, 2]}), compression)
    assert len(content) < 2_000_000
    problem = refusal(content, ReaderBounds(memory_bytes=2**28, seconds=60))
    assert problem.status == 413
    assert "VNCE_READER_MEMORY_BYTES" in problem.detail


@pytest.mark.parametrize("length", [2**31, 2**40, 2**62, -1, -(2**63)])
@pytest.mark.parametrize("type_", [pa.null(), pa.float64(), pa.string()], ids=str)
def test_an_arrow_file_that_lies_about_its_rows_is_refused(length: int, type_: pa.DataType) -> None:
    true_length = 7654321 if pa.types.is_null(type_) else 7
    content = arrow(pa.table({"x": pa.nulls(true_length, type_)}))
    word = true_length.to_bytes(8, "little")
    assert word in content
    lie = content.replace(word, length.to_bytes(8, "little", signed=True))
    assert refusal(lie).status in (413, 422)


@pytest.mark.parametrize("size", [2**40, 2**62, -2, -(2**63)])
def test_an_arrow_file_that_lies_about_what_a_buffer_unfolds_to_is_refused(size: int) -> None:
    values = pa.array([1.5] * 1234)
    content = arrow(pa.table({"x": values}), "zstd")
    word = (8 * len(values)).to_bytes(8, "little")
    assert word in content
    lie = content.replace(word, size.to_bytes(8, "little", signed=True))
    assert refusal(lie).status in (413, 422)


def test_a_reader_that_takes_too_long_is_ended() -> None:
    problem = refusal(SLOW, ReaderBounds(memory_bytes=2**30, seconds=1))
    assert problem.status == 413
    assert "VNCE_READER_SECONDS" in problem.detail


@linux_only
def test_a_reader_that_crashes_costs_one_upload() -> None:
    server = fork_server()
    wait_for(lambda: not children(server))
    problems: list[ProblemError] = []
    upload = threading.Thread(target=lambda: problems.append(refusal(SLOW)))
    upload.start()
    wait_for(lambda: any(_is_at_work(child) for child in children(server)))
    os.kill(children(server)[0], signal.SIGSEGV)
    upload.join(60)
    assert [problem.status for problem in problems] == [422]
    assert "ended the process" in problems[0].detail
    assert fork_server() == server


def _is_at_work(process: int) -> bool:
    """Whether a process has had more time than it takes to start reading."""
    return int(_status(process)[11]) > os.sysconf("SC_CLK_TCK") // 4


@linux_only
def test_readers_come_back_when_what_forks_them_is_gone() -> None:
    server = fork_server()
    os.kill(server, signal.SIGKILL)
    wait_for(lambda: _is_zombie(server))
    assert fork_server() != server


def _is_zombie(process: int) -> bool:
    return _status(process)[0] == "Z"


ASKS = """
import io, multiprocessing, os, sys
from contextlib import suppress
from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.sandbox import ReaderBounds, ReadRequest, read_upload
from service.settings import Settings

limits, bounds = ReadLimits.from_settings(Settings()), ReaderBounds(2**29, 60)
with open(sys.argv[1], "rb") as file, read_upload(file, ReadRequest(ReadOptions(), limits, bounds)):
    pass
print(os.getpid(), flush=True)
context = multiprocessing.get_context("forkserver")
looking = context.Process(target=os.system, args=(f"env > {sys.argv[2]}",))
looking.start()
looking.join()
input()
"""


@linux_only
def test_readers_know_no_secret_and_leave_with_the_process_that_asked(tmp_path: Path) -> None:
    table, seen = tmp_path / "table.csv", tmp_path / "seen"
    table.write_bytes(TABLE)
    secrets = {"VNCE_DATABASE_URL": "postgresql://u:s3cr3t@h/d", "PGPASSWORD": "s3cr3t"}
    with subprocess.Popen(
        [sys.executable, "-c", ASKS, table, seen],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **secrets},
    ) as asking:
        assert asking.stdout is not None
        started = children(int(asking.stdout.readline()))
        wait_for(lambda: seen.exists() and "ARROW_DEFAULT_MEMORY_POOL" in seen.read_text())
        assert "s3cr3t" not in seen.read_text()
        asking.kill()
    wait_for(lambda: not any(Path(f"/proc/{process}").exists() for process in started))


SCRIPT = """
import sys
from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.reading import read_dataset
from service.http.problems import ProblemError
from service.settings import Settings

def peak():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024

before = peak()
with open(sys.argv[1], "rb") as file:
    try:
        read_dataset(file, ReadOptions(), ReadLimits.from_settings(Settings()))
    except ProblemError as problem:
        print(problem.status, peak() - before)
"""


@pytest.mark.slow
@linux_only
def test_a_small_file_of_more_than_a_gigabyte_is_refused_with_flat_memory(tmp_path: Path) -> None:
    rows, groups = 8_000_000, 20
    schema = pa.schema([("x", pa.float64())])
    table = pa.table([pa.repeat(pa.scalar(1.5), rows)], schema=schema)
    file = tmp_path / "small.parquet"
    options = {"compression": "zstd", "data_page_size": 2**30, "write_statistics": False}
    with pq.ParquetWriter(file, schema, **options) as writer:
        for _ in range(groups):
            writer.write_table(table, row_group_size=rows)
    assert file.stat().st_size < 500_000
    assert rows * groups * 8 == 1_280_000_000
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, file], capture_output=True, text=True, timeout=120
    )
    status, growth = map(int, done.stdout.split())
    assert status == 413
    # Reading the footer and making the problem's document; one decoded row group takes 64 MB.
    assert growth < 32 * 2**20

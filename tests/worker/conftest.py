"""A database with jobs and a real queue, for tests of what happens to jobs."""

import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from redis import Redis
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from service.datasets import repository as datasets
from service.datasets.stored_table import to_parquet
from service.datasets.vocabulary import DatasetFormat
from service.db.clock import now
from service.db.database import Database
from service.db.identifiers import new_id
from service.db.tenant_names import DEFAULT_TENANT
from service.jobs.records import JobRecord
from service.jobs.specs.estimation import EstimationSpec
from tests.waiting import wait_for
from worker.artefacts.figures import drawing
from worker.embedded import valkey
from worker.processes.managed import Command, ManagedProcess


@pytest.fixture(scope="session", autouse=True)
def _quick_pdf() -> Iterator[None]:
    """Draw letters of PDF files as shapes; a subset of a font takes longer than a small fit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(drawing._STYLE, "pdf.fonttype", 3)
        yield


@pytest.fixture
def database(sqlite_url: str) -> Iterator[Database]:
    database = Database(sqlite_url).of(DEFAULT_TENANT)
    yield database
    database.dispose()


@dataclass
class Server:
    """Whether a database server is away, and how many were refused meanwhile."""

    is_away: bool = False
    num_refused: int = 0


class DatabaseThatLeaves(Database):
    """A database that can be made to refuse connections."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        # Shared with the handles that `of` narrows.
        self.server = Server()

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        if self.server.is_away:
            self.server.num_refused += 1
            raise OperationalError("BEGIN", {}, ConnectionRefusedError())
        with super().transaction() as session:
            yield session


@pytest.fixture
def leaving_database(sqlite_url: str) -> Iterator[DatabaseThatLeaves]:
    """Yield a second handle to the same database, which can be made to refuse."""
    database = DatabaseThatLeaves(sqlite_url)
    yield database
    database.dispose()


@pytest.fixture
def add_job(database: Database) -> Callable[..., str]:
    """Return a function that stores a queued job, to be sent, and returns the job's id."""
    numbers = count()

    def add(dataset_id: str | None = None, variables: tuple[str, ...] = ("a", "b")) -> str:
        request = EstimationSpec(dataset_id=dataset_id or "none", variables=list(variables), seed=1)
        spec = request.model_dump(mode="json")
        job = JobRecord(
            id=new_id("job"),
            kind="estimation",
            spec=spec,
            dataset_id=dataset_id,
            ground_truth=None,
            tag=None,
            max_attempts=3,
            # SQLite's clock counts milliseconds, in which several are made.
            woken_at=now() + 1e-6 * next(numbers),
        )
        with database.transaction() as session:
            session.add(job)
        return job.id

    return add


@pytest.fixture
def job_id(database: Database, add_job: Callable[..., str]) -> str:
    """Return the id of a queued job on a small table."""
    values = np.abs(np.random.default_rng(3).normal(size=(60, 3))) + 0.1
    table = pa.table({name: values[:, i] for i, name in enumerate("abc")})
    with database.transaction() as session:
        stored = datasets.add(
            session,
            datasets.NewDataset(
                id=new_id("dataset"),
                name="three columns",
                format=DatasetFormat.CSV,
                num_rows=60,
                num_columns=3,
                summary={},
                original=BytesIO(b"a,b,c\n"),
                table=to_parquet(table),
                cells=None,
            ),
        )
        dataset_id = stored.record.id
    return add_job(dataset_id, variables=("a", "b", "c"))


@pytest.fixture
def read_job(database: Database) -> Callable[[str], JobRecord]:
    """Return a function that reads a job's row."""

    def read(job_id: str) -> JobRecord:
        with database.snapshot() as session:
            job = session.get(JobRecord, job_id)
        assert job is not None
        return job

    return read


class ValkeyServer:
    """A Valkey of this test's own, which keeps nothing when it is killed."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "socket"
        self.url = valkey.url(self.socket)
        command = [*valkey.command(self.socket, folder), "--appendonly", "no"]
        self.process = ManagedProcess(Command("valkey", command, {}), folder / "valkey.log")
        self._wait_until_it_answers()

    @property
    def client(self) -> Redis:
        return Redis.from_url(self.url)

    def kill(self) -> None:
        self.process.kill()

    def restart_empty(self) -> None:
        self.process.restart()
        self._wait_until_it_answers()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def _wait_until_it_answers(self) -> None:
        wait_for(lambda: valkey.answers(self.socket), "the server")


@pytest.fixture
def valkey_server() -> Iterator[ValkeyServer]:
    # Not tmp_path: the name of a socket is at most about 100 characters long.
    with tempfile.TemporaryDirectory() as folder:
        server = ValkeyServer(Path(folder))
        yield server
        server.kill()

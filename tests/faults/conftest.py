"""A stack of real processes on PostgreSQL and Valkey, each of which a test may hurt.

Only processes that were started here are stopped, frozen or killed.
"""

import io
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import numpy as np
import psutil
import pyarrow as pa
import pytest
from pyarrow import parquet
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import func, select

from service import schema
from service.database import Database
from service.results.records import ResultRecord
from worker import threads, valkey
from worker.celery_app import QUEUE_NAME
from worker.client import Client
from worker.processes import Command, ManagedProcess

T = TypeVar("T")
Json = dict[str, Any]

LEASE_SECONDS = 5.0
REAPER_SECONDS = 0.5
# What every process of a stack is told; the rest is as an installation has it by default.
ENVIRONMENT = {
    **threads.environment(1),
    "PYTHONUNBUFFERED": "1",
    "VNCE_AUTHENTICATION": "none",
    "VNCE_LEASE_SECONDS": str(LEASE_SECONDS),
    "VNCE_REAPER_SECONDS": str(REAPER_SECONDS),
    "VNCE_RESEND_SECONDS": "1",
    "VNCE_PROGRESS_SECONDS": "0.1",
    # An attempt that goes on from a checkpoint repeats another's numbers to a tolerance only.
    "VNCE_CHECKPOINT_SECONDS": "3600",
    # Never, so that a second attempt begins anew and repeats the first one to the last bit.
    "VNCE_CHECKPOINT_SECONDS": "3600",
    # Twice what the jobs of these tests hold, except for one.
    "VNCE_JOB_MEMORY_BYTES": str(900 * 10**6),
}
API = ("uvicorn", "--factory", "service.main:create_app_from_environment", "--host", "127.0.0.1")
# For what the issue does not bound, on a machine that may have much else to do.
PATIENCE_SECONDS = 120.0
FINAL = ("succeeded", "failed", "cancelled")


def wait_for(read: Callable[[], T | None], what: str, seconds: float = PATIENCE_SECONDS) -> T:
    """Return the first answer of `read` that is not None, False or empty."""
    deadline = time.monotonic() + seconds
    while not (answer := read()):
        assert time.monotonic() < deadline, f"waited {seconds} seconds for {what}"
        time.sleep(0.05)
    return answer


def processor_seconds(process: psutil.Process) -> float:
    """Return how long a process has computed; 0 once it has ended."""
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


class Broker:
    """A Valkey server on loopback that keeps nothing when it stops."""

    def __init__(self, folder: Path, port: int) -> None:
        options = ["--bind", "127.0.0.1", "--port", str(port), "--appendonly", "no"]
        argv = [*valkey.command(folder / "socket", folder), *options]
        self._command = Command("valkey", argv, {})
        self._log_file = folder / "valkey.log"
        self.url = f"redis://127.0.0.1:{port}/0"
        # The queues of stacks of their own, apart from the session's.
        self.other_url = f"redis://127.0.0.1:{port}/1"
        self.client = Redis.from_url(self.url, socket_timeout=5)
        self.start()

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        self._process = ManagedProcess(self._command, self._log_file)
        wait_for(self.answers, "the broker")

    def kill(self) -> None:
        self._process.kill()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except RedisError:
            return False

    def num_messages(self) -> int:
        """Return how many messages wait in the queue."""
        return int(self.client.llen(QUEUE_NAME))


class Stack:
    """API, dispatchers and workers over one database and one broker."""

    lease_seconds = LEASE_SECONDS
    # From the end of a lease until another worker is told, at most, on an idle machine.
    wake_seconds = REAPER_SECONDS + 0.5

    def __init__(self, folder: Path, database_url: str, broker_url: str) -> None:
        self.database = Database(database_url)
        self.processes: dict[str, ManagedProcess] = {}
        self._folder = folder
        self._port = free_port()
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{self._port}", timeout=20, trust_env=False
        )
        self.client = Client(self.http)
        self._environment = {
            **ENVIRONMENT,
            "VNCE_DATABASE_URL": database_url,
            "VNCE_BROKER_URL": broker_url,
        }

    def start(
        self, name: str, argv: tuple[str, ...], prefix: tuple[str, ...] = (), **environment: str
    ) -> ManagedProcess:
        """Start `python -m argv`, behind the words of a command that runs it."""
        command = Command(
            name,
            [*prefix, sys.executable, "-m", *argv],
            {**self._environment, **environment},
        )
        self.processes[name] = ManagedProcess(command, self._folder / f"{name}.log")
        return self.processes[name]

    def start_api(self, name: str = "api", **options: Any) -> ManagedProcess:
        port = options.pop("port", self._port)
        argv = (*API, "--port", str(port), "--timeout-graceful-shutdown", "5")
        return self.start(name, argv, **options)

    def start_worker(self, name: str = "worker", **options: Any) -> ManagedProcess:
        return self.start(name, ("worker",), **options)

    def start_dispatcher(self, name: str = "dispatcher", **options: Any) -> ManagedProcess:
        return self.start(name, ("worker.dispatcher",), **options)

    def wait_until_ready(self) -> None:
        """Wait until the API takes requests."""

        def is_ready() -> bool:
            try:
                return self.http.get("/readyz").is_success
            except httpx.TransportError:
                return False

        wait_for(is_ready, "the API to be ready")

    @property
    def workers(self) -> list[ManagedProcess]:
        """Return the workers' parent processes."""
        running = [process for process in self.processes.values() if not process.has_ended]
        return [process for process in running if process.command.name.startswith("worker")]

    @contextmanager
    def workers_frozen(self) -> Iterator[None]:
        """Let no worker take a message."""
        frozen = self.workers
        for process in frozen:
            process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for process in frozen:
                process.send_signal(signal.SIGCONT)

    def busy_child(self) -> psutil.Process:
        """Return the process of a worker that computes."""
        first_seen: dict[psutil.Process, float] = {}

        def computing() -> psutil.Process | None:
            for parent in self.workers:
                for child in psutil.Process(parent.pid).children():
                    used = processor_seconds(child)
                    # More than a process uses that only waits for a message.
                    if used - first_seen.setdefault(child, used) > 0.1:
                        return child
            return None

        return wait_for(computing, "a process to compute")

    def parent_of(self, child: psutil.Process) -> ManagedProcess:
        """Return the worker that has forked a process."""
        return next(worker for worker in self.workers if worker.pid == child.ppid())

    def submit(self, body: Json) -> str:
        return str(self.client.submit(body)["id"])

    def wait(self, job_id: str, *states: str) -> Json:
        """Return the job once it is in one of the states, or in a final one if none is given."""

        def reached() -> Json | None:
            job = self.client.job(job_id)
            return job if job["state"] in (states or FINAL) else None

        return wait_for(reached, f"{job_id} to be {states or FINAL}")

    def wait_until_fitting(self, job_id: str) -> None:
        """Wait until the job's fit has reported a step."""

        def is_fitting() -> bool:
            job = self.client.job(job_id)
            assert job["state"] not in FINAL, job
            return bool(job["progress"]) and job["progress"]["stage"] not in ("prepare", "export")

        wait_for(is_fitting, f"the fit of {job_id}")

    def num_results(self, job_id: str) -> int | None:
        with self.database.snapshot() as session:
            results = select(func.count()).where(ResultRecord.job_id == job_id)
            return session.scalar(results)

    def estimates(self, job_id: str) -> Json:
        """Return the numbers of a job's one result, which another run must repeat."""
        assert self.num_results(job_id) == 1
        result = self.client.result(job_id)
        return {key: result[key] for key in ("precision", "linear", "log_partition", "penalty")}

    def cancel_all(self) -> None:
        """Cancel what a test has left behind, and wait until nothing runs."""

        def unfinished() -> list[Json]:
            jobs = self.client.jobs
            return [job for state in ("queued", "running") for job in jobs(state=state)["items"]]

        for job in unfinished():
            self.client.cancel(job["id"])
        wait_for(lambda: not unfinished(), "all jobs to end")

    def keep_only(self, names: Collection[str]) -> None:
        """Start again those of the named processes that have ended, and end all others."""
        for name in set(self.processes) - set(names):
            self.processes.pop(name).kill()
        for name in names:
            if self.processes[name].has_ended:
                self.start_again(name)

    def start_again(self, name: str) -> None:
        """Start a process that has ended as it was started before."""
        ended = self.processes[name]
        self.processes[name] = ManagedProcess(ended.command, ended.log_file)

    def close(self) -> None:
        """End every process."""
        self.keep_only([])
        self.http.close()
        self.database.dispose()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def session_broker() -> Iterator[Broker]:
    """Yield the broker of this session."""
    # Not pytest's folder: the name of a socket is at most about 100 characters long.
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Path(folder), free_port())
        yield broker
        broker.kill()


@pytest.fixture
def broker(session_broker: Broker) -> Iterator[Broker]:
    """Yield a broker that a test may stop and freeze."""
    yield session_broker
    if not session_broker.answers():
        session_broker.start()


@pytest.fixture
def postgres(own_postgres: Any) -> Iterator[Any]:
    """Yield a PostgreSQL server that a test may stop."""
    yield own_postgres
    if not own_postgres.is_running:
        own_postgres.start()


@pytest.fixture(scope="session")
def session_stack(
    own_postgres: Any, session_broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """Yield the stack of this session: two workers, so that one can do the other's work."""
    schema.upgrade(own_postgres.url)
    folder = tmp_path_factory.mktemp("stack")
    with closing(Stack(folder, own_postgres.url, session_broker.url)) as stack:
        stack.start_worker("worker-1")
        stack.start_worker("worker-2")
        stack.start_dispatcher()
        stack.start_api()
        yield stack


@pytest.fixture
def stack(session_stack: Stack, broker: Broker, postgres: Any) -> Iterator[Stack]:
    """Yield a whole stack; what a test has stopped is started again, and its jobs are cancelled."""
    standard = list(session_stack.processes)
    session_stack.wait_until_ready()
    yield session_stack
    if not broker.answers():
        broker.start()
    if not postgres.is_running:
        postgres.start()
    session_stack.keep_only(standard)
    session_stack.wait_until_ready()
    session_stack.cancel_all()


@pytest.fixture
def make_stack(broker: Broker, tmp_path: Path) -> Iterator[Callable[[str], Stack]]:
    """Yield a function that makes a stack, without processes, on a migrated database."""
    with ExitStack() as opened, Redis.from_url(broker.other_url) as client:
        client.flushdb()

        def make(database_url: str) -> Stack:
            return opened.enter_context(closing(Stack(tmp_path, database_url, broker.other_url)))

        yield make


@pytest.fixture(name="free_port")
def free_port_fixture() -> Callable[[], int]:
    """Return the function that finds a port on loopback that nobody listens on now."""
    return free_port


@pytest.fixture(name="wait_for")
def wait_for_fixture() -> Callable[..., Any]:
    """Return the function that waits for an answer."""
    return wait_for


@pytest.fixture(name="processor_seconds")
def processor_seconds_fixture() -> Callable[[psutil.Process], float]:
    """Return the function that tells how long a process has computed."""
    return processor_seconds


def upload(stack: Stack, table: np.ndarray) -> str:
    columns = [pa.array(column, from_pandas=True) for column in table.T]
    content = io.BytesIO()
    parquet.write_table(pa.table(columns, [f"v{i}" for i in range(len(columns))]), content)
    made = stack.client.upload_dataset(content.getvalue(), {"format": "parquet"}, preview=False)
    return str(made["id"])


def draw_table(num_rows: int, num_columns: int) -> np.ndarray:
    rng = np.random.default_rng(20260102)
    mixing = rng.normal(size=(num_columns, num_columns))
    return np.abs(rng.normal(size=(num_rows, num_columns)) @ mixing)


@pytest.fixture(scope="session")
def long_fit(session_stack: Stack) -> Json:
    """Return a job of some seconds in many steps, which it reports."""
    session_stack.wait_until_ready()
    table = draw_table(2000, 20)
    table[np.random.default_rng(1).random(table.shape) < 0.3] = np.nan
    estimator = {"kind": "vnce", "penalty": 1.0, "noise_ratio": 30, "max_iter": 8, "tol": 1e-9}
    dataset_id = upload(session_stack, table)
    return {"kind": "estimation", "dataset_id": dataset_id, "estimator": estimator, "seed": 7}


@pytest.fixture(scope="session")
def undisturbed(session_stack: Stack, long_fit: Json) -> Json:
    """Return the estimates of `long_fit` where nothing has gone wrong."""
    job_id = session_stack.submit(long_fit)
    job = session_stack.wait(job_id)
    assert (job["state"], job["attempt"]) == ("succeeded", 1)
    return session_stack.estimates(job_id)


@pytest.fixture(scope="session")
def greedy_fit(session_stack: Stack) -> Json:
    """Return a job that needs more memory than the stack's workers may use."""
    session_stack.wait_until_ready()
    estimator = {"kind": "vnce", "penalty": 1.0, "noise_ratio": 100, "max_iter": 3}
    dataset_id = upload(session_stack, draw_table(30_000, 20))
    return {"kind": "estimation", "dataset_id": dataset_id, "estimator": estimator, "seed": 7}


@pytest.fixture
def silent_job() -> Json:
    """Return a job of some ten seconds of which most are one step, without a word."""
    return {"kind": "simulation", "graph": "ring", "n_variables": 500, "n_rows": 20_000, "seed": 1}


@pytest.fixture
def short_job() -> Json:
    """Return a job that is done in a moment."""
    return {"kind": "simulation", "graph": "ring", "n_variables": 3, "n_rows": 10, "seed": 1}

"""The processes of a stack on PostgreSQL and Valkey, each of which a test may hurt.

Only processes that were started here are stopped, frozen or killed.
"""

import signal
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import func, select

from service.db.database import Database
from service.jobs.result_records import ResultRecord
from service.monitoring.broker import QUEUE_NAME
from tests.embedded_postgres import free_port
from tests.waiting import wait_for
from worker.cli.client import Client
from worker.embedded import valkey
from worker.processes import threads
from worker.processes.managed import Command, ManagedProcess

Json = dict[str, Any]

LEASE_SECONDS = 3.0
REAPER_SECONDS = 0.5
# What every process of a stack is told; the rest is as an installation has it by default.
ENVIRONMENT = {
    **threads.environment(1),
    "PYTHONUNBUFFERED": "1",
    "VNCE_AUTHENTICATION": "none",
    "VNCE_LEASE_SECONDS": str(LEASE_SECONDS),
    "VNCE_HEARTBEAT_SECONDS": "0.5",
    "VNCE_REAPER_SECONDS": str(REAPER_SECONDS),
    "VNCE_RESEND_SECONDS": "1",
    "VNCE_PROGRESS_SECONDS": "0.1",
    # An attempt that goes on from a checkpoint repeats another's numbers to a tolerance only.
    "VNCE_CHECKPOINT_SECONDS": "3600",
    # Twice what the jobs of these tests hold, except for one.
    "VNCE_JOB_MEMORY_BYTES": str(900 * 10**6),
}
FINAL = ("succeeded", "failed", "cancelled")


def processor_seconds(process: psutil.Process) -> float:
    """Return how long a process has computed; 0 once it has ended."""
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


def wait_until_idle(process: psutil.Process) -> None:
    """Wait until a process has stopped computing, or has ended."""

    def is_idle() -> bool:
        used = processor_seconds(process)
        time.sleep(1)
        return processor_seconds(process) - used < 0.1

    wait_for(is_idle, "a process to stop computing")


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

    @contextmanager
    def full(self) -> Iterator[None]:
        """Let it refuse whatever takes memory."""
        self.client.set("ballast", "x" * 2**20)
        self.client.config_set("maxmemory", 2**20)
        try:
            yield
        finally:
            self.client.config_set("maxmemory", 0)
            self.client.delete("ballast")

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
        return self.start(name, ("service", "--port", str(port)), **options)

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

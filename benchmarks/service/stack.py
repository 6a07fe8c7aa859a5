"""API, dispatcher, workers and broker as processes of their own over one database."""

import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import httpx

from service.db import schema
from service.db.database import Database
from service.db.tenant_names import DEFAULT_TENANT
from service.http.scopes import Scope
from service.keys import lifecycle as keys
from tests.embedded_postgres import EmbeddedPostgres, free_port
from worker.cli.client import Client
from worker.embedded import valkey
from worker.processes import threads
from worker.processes.managed import Command, ManagedProcess, stop

T = TypeVar("T")

# What an installation limits and a load test must pass; all else is as it is by default.
SETTINGS = {
    "VNCE_REQUESTS_PER_MINUTE": "1000000000",
    "VNCE_MAX_UNFINISHED_JOBS": "100000",
    "VNCE_MAX_BODY_BYTES": str(2**27),
}
# As a background job: it gives way to whatever else wants a core.
LOW_PRIORITY = ("nice", "-n", "19")
STOP_SECONDS = 10.0
PATIENCE_SECONDS = 300.0


class Stack:
    """The processes of a service; one on PostgreSQL asks for API keys, as installations do."""

    def __init__(self, folder: Path, database_url: str, *, requires_keys: bool) -> None:
        schema.upgrade(database_url)
        self.database = Database(database_url)
        self.tenant_database = self.database.of(DEFAULT_TENANT)
        self.token: str | None = None
        self.processes: dict[str, ManagedProcess] = {}
        self._folder = folder
        broker_socket = folder / "broker"
        self._environment = {
            **threads.environment(1),
            **SETTINGS,
            "VNCE_DATABASE_URL": database_url,
            "VNCE_BROKER_URL": valkey.url(broker_socket),
            "VNCE_AUTHENTICATION": "none",
        }
        if requires_keys:
            self._require_keys()
        self._broker = self._start("broker", *valkey.command(broker_socket, folder))
        wait_for(lambda: valkey.answers(broker_socket), "the broker")
        self.broker_url = valkey.url(broker_socket)
        self.url = ""

    def start_api(self, name: str = "api", prefix: tuple[str, ...] = ()) -> str:
        """Start an API process; return its URL once it answers."""
        port = free_port()
        self._python(name, "service", "--port", str(port), prefix=prefix)
        url = f"http://127.0.0.1:{port}"
        wait_for(lambda: _answers(url), f"{name} to answer")
        self.url = self.url or url
        return url

    def start_worker(self, name: str, prefix: tuple[str, ...] = ()) -> None:
        """Start a worker, which runs one job at a time."""
        self._python(name, "worker", prefix=prefix)

    def start_dispatcher(self) -> None:
        """Start what carries messages from the database to the broker."""
        self._python("dispatcher", "worker.dispatcher")

    def stop(self, *names: str) -> None:
        """Stop processes, which hand back what they are at."""
        stop([self.processes.pop(name) for name in names], STOP_SECONDS)

    def client(self) -> Client:
        """Return a client of the first API process."""
        return Client.connect(self.url, self.token)

    def close(self) -> None:
        """Stop everything, the broker last."""
        self.stop(*(name for name in self.processes if name != "broker"))
        self.stop("broker")
        self.database.dispose()

    def _require_keys(self) -> None:
        secret = secrets.token_hex(32)
        self._environment |= {"VNCE_AUTHENTICATION": "keys", "VNCE_KEY_SECRET": secret}
        with self.tenant_database.transaction() as session:
            scopes = [Scope.READ, Scope.SUBMIT, Scope.METRICS]
            made = keys.create(session, secret, name="load", scopes=scopes, expires_at=None)
        self.token = made.token

    def _python(self, name: str, *argv: str, prefix: tuple[str, ...] = ()) -> None:
        self._start(name, *prefix, sys.executable, "-m", *argv)

    def _start(self, name: str, *argv: str) -> ManagedProcess:
        command = Command(name, argv, self._environment)
        self.processes[name] = ManagedProcess(command, self._folder / f"{name}.log")
        return self.processes[name]


@contextmanager
def on_sqlite() -> Iterator[Stack]:
    """Yield a stack on a new SQLite file, as `vnce serve` has it."""
    with tempfile.TemporaryDirectory(prefix="vnce-load-") as folder:
        url = f"sqlite:///{folder}/vnce.db"
        with closing(Stack(Path(folder), url, requires_keys=False)) as stack:
            yield stack


@contextmanager
def on_postgresql() -> Iterator[Stack]:
    """Yield a stack on a new PostgreSQL server that writes through to the disk."""
    with (
        tempfile.TemporaryDirectory(prefix="vnce-load-") as folder,
        closing(EmbeddedPostgres(fsync="on")) as server,
        closing(Stack(Path(folder), server.url, requires_keys=True)) as stack,
    ):
        yield stack


def wait_for(
    read: Callable[[], T | None], what: str, pause: float = 0.05, seconds: float = PATIENCE_SECONDS
) -> T:
    """Return the first answer of `read` that is not None, False or empty."""
    deadline = time.monotonic() + seconds
    while not (answer := read()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} seconds for {what}")
        time.sleep(pause)
    return answer


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/livez", timeout=1, trust_env=False).is_success
    except httpx.TransportError:
        return False

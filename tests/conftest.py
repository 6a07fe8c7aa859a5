"""Databases and an HTTP client for tests."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from fastapi.testclient import TestClient
from hypothesis import settings as hypothesis_settings
from sqlalchemy import make_url

from service.app import create_app
from service.db import schema
from service.db.database import Database
from service.db.tenant_names import DEFAULT_TENANT
from service.settings import Authentication, Settings
from tests.embedded_postgres import EmbeddedPostgres, conninfo, free_port
from tests.tables import METADATA

# A server that is given by the environment must allow CREATE DATABASE.
POSTGRES_VARIABLE = "VNCE_TEST_POSTGRES_URL"
HERE = Path(__file__).parent
# Few examples, the same each time; `make test-release` takes many.
hypothesis_settings.register_profile("few", max_examples=25, deadline=None, derandomize=True)
hypothesis_settings.load_profile("few")
hypothesis_settings.register_profile("release", max_examples=300)
# Folders whose tests share a running service, and mostly wait for it.
STACKS = ("faults", "integration")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep in one process of pytest-xdist what shares fixtures, and begin with the longest.

    A folder of `STACKS` stays together, and elsewhere a file.
    """
    for item in items:
        folder = item.path.relative_to(HERE).parts[0]
        item.add_marker(pytest.mark.xdist_group(folder if folder in STACKS else str(item.path)))
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(
        key=lambda item: (
            item.path.relative_to(HERE).parts[0] not in STACKS,
            item.path not in slow,
        )
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
    with closing(EmbeddedPostgres(fsync="off")) as server:
        yield server.url


@pytest.fixture(scope="session")
def own_postgres() -> Iterator[EmbeddedPostgres]:
    """Yield a PostgreSQL server that tests may stop and start."""
    with closing(EmbeddedPostgres(fsync="off")) as server:
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
    tables = ", ".join(METADATA.tables)
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


def _execute(url: str, statement: str) -> None:
    """Run a statement outside any transaction."""
    with psycopg.connect(conninfo(url), autocommit=True) as connection:
        connection.execute(statement.encode())


@contextmanager
def _new_database(server: str) -> Iterator[str]:
    name = f"vnce_test_{uuid4().hex}"
    _execute(server, f"CREATE DATABASE {name}")
    yield make_url(server).set(database=name).render_as_string(hide_password=False)
    _execute(server, f"DROP DATABASE {name} WITH (FORCE)")

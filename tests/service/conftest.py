"""Data sets in a database of either kind, and API keys."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import uvicorn
from pydantic import SecretStr
from starlette.types import ASGIApp

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.reading import read_dataset
from service.datasets.records import DatasetRecord, GroundTruthRecord
from service.db import blobs
from service.db.database import Database
from service.db.identifiers import new_id
from service.db.tenant_names import DEFAULT_TENANT
from service.http.scopes import Scope
from service.http.serving import configuration
from service.keys import lifecycle
from service.settings import MIN_HASH_KEY_LENGTH, Authentication, Settings

AddDataset = Callable[..., str]
MakeKey = Callable[..., dict[str, str]]
HASH_KEY = "k" * MIN_HASH_KEY_LENGTH


@pytest.fixture
def serve() -> Iterator[Callable[..., int]]:
    """Yield a function that serves an app on loopback as installations do; it returns the port."""
    with ExitStack() as running:

        def on_loopback(app: ASGIApp, settings: Settings | None = None) -> int:
            listener = running.enter_context(socket.create_server(("127.0.0.1", 0)))
            server = uvicorn.Server(configuration(app, settings or Settings(), graceful_seconds=1))
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
            thread.start()
            running.callback(thread.join, 30)
            running.callback(setattr, server, "should_exit", True)
            return int(listener.getsockname()[1])

        yield on_loopback


@pytest.fixture
def keyed_settings(settings: Settings) -> Settings:
    """Return settings that ask for API keys."""
    changes = {"authentication": Authentication.KEYS, "key_secret": SecretStr(HASH_KEY)}
    return settings.model_copy(update=changes)


@pytest.fixture
def make_key(keyed_settings: Settings) -> Iterator[MakeKey]:
    """Yield a function that makes a tenant's key and returns the header that sends it."""
    database = Database(keyed_settings.database_url)

    def make(tenant: str = DEFAULT_TENANT, *scopes: Scope, **choices: Any) -> dict[str, str]:
        with database.of(tenant).transaction() as session:
            made = lifecycle.create(
                session,
                HASH_KEY,
                name="tests",
                scopes=scopes or list(Scope),
                expires_at=choices.get("expires_at"),
            )
        return {"Authorization": f"Bearer {made.token}"}

    yield make
    database.dispose()


@pytest.fixture
def add_dataset(database: Database) -> AddDataset:
    """Return a function that stores a CSV text with its true edges and returns its id."""

    def add(csv: str, truth: list[list[str]] | None = None) -> str:
        content = csv.encode()
        read = read_dataset(content, ReadOptions(), ReadLimits.from_settings(Settings()))
        with database.transaction() as session:
            blob = blobs.store(session, content)
            dataset = DatasetRecord(
                id=new_id("ds"),
                name="table.csv",
                format=read.format,
                num_rows=read.summary.n_rows,
                num_columns=read.summary.n_columns,
                summary=read.summary.model_dump(mode="json"),
                original_blob_id=blob.id,
                table_blob_id=blob.id,
            )
            session.add(dataset)
            session.flush()
            if truth is not None:
                session.add(GroundTruthRecord(dataset_id=dataset.id, edges=truth))
        return dataset.id

    return add

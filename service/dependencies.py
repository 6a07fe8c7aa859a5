"""What endpoints ask for: the settings and a transaction that ends before the answer leaves."""

from collections.abc import Iterator
from typing import Annotated, cast

from fastapi import Depends, Request
from sqlalchemy.orm import Session

from service.database import Database
from service.settings import Settings


def get_settings(request: Request) -> Settings:
    """Return the settings the app was created with."""
    return cast(Settings, request.app.state.settings)  # app.state is untyped


def get_database(request: Request) -> Database:
    """Return the app's database."""
    return cast(Database, request.app.state.database)  # app.state is untyped


SettingsDep = Annotated[Settings, Depends(get_settings)]
DatabaseDep = Annotated[Database, Depends(get_database)]


def _transaction(database: DatabaseDep) -> Iterator[Session]:
    with database.transaction() as session:
        yield session


def _snapshot(database: DatabaseDep) -> Iterator[Session]:
    with database.snapshot() as session:
        yield session


# scope="function": the commit happens before the client has its answer. With the default scope
# it would happen after, and a 202 could name a job that was never stored.
TransactionDep = Annotated[Session, Depends(_transaction, scope="function")]
SnapshotDep = Annotated[Session, Depends(_snapshot, scope="function")]

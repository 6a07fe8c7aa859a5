"""Connections and transactions on SQLite and PostgreSQL."""

import copy
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Self

from pydantic_core import from_json
from sqlalchemy import Connection, Engine, MetaData, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection, ExceptionContext
from sqlalchemy.exc import InterfaceError, InvalidatePoolError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import DeclarativeBase, ORMExecuteState, Session, UOWTransaction
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from service.db.read_timeout import Connector
from service.db.tenancy import TenantSession

# What is raised when the database does not answer, as opposed to when it says no.
UNREACHABLE = (OperationalError, InterfaceError, PoolTimeoutError)
# Names that a migration can refer to on both databases.
NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
SQLITE_BUSY_SECONDS = 30
CONNECT_SECONDS = 5
# After which a connection to a host that has vanished, or to a server that hangs, is given up. No
# query of ours takes so long; a migration may.
SILENCE_SECONDS = 20
# A process that is frozen or cut off in the middle of a transaction holds its locks no longer: so
# long its job waits for another worker.
UNHEARD_SECONDS = 10
# Nobody waits longer for a row that somebody else has locked; it is as if the database were away.
LOCK_SECONDS = 5
# A connection that has rested longer is tested before it is used.
TRUSTED_SECONDS = 1.0
_RESTING_SINCE = "resting since"


class Record(DeclarativeBase):
    """Base of every table's record."""

    metadata = MetaData(naming_convention=NAMING)


class ReadingSession(TenantSession):
    """A session that refuses to change anything."""


@event.listens_for(ReadingSession, "before_flush")
def _refuse_to_flush(session: Session, context: UOWTransaction, instances: object) -> None:
    raise TypeError("this session is for reading: open a transaction to change something")


@event.listens_for(ReadingSession, "do_orm_execute")
def _refuse_to_write(state: ORMExecuteState) -> None:
    if state.is_insert or state.is_update or state.is_delete:
        raise TypeError("this session is for reading: open a transaction to change something")


class Database:
    """One process's handle on the database, for the rows of all tenants unless `of` narrows it."""

    def __init__(self, url: str, *, silence: float | None = SILENCE_SECONDS) -> None:
        """Open it; a server that answers nothing for `silence` seconds is given up, if ever."""
        # To whose rows it is narrowed; None: to nobody's.
        self.tenant: str | None = None
        self.engine = _create_engine(url, silence)
        self._is_sqlite = self.engine.dialect.name == "sqlite"
        self._writing_engine = self.engine.execution_options(vnce_writes=True)
        # PostgreSQL's statements each see what is committed when they begin, in a transaction or
        # not; without one there is no BEGIN and no ROLLBACK to wait for.
        self._reading_engine = (
            self.engine
            if self._is_sqlite
            else self.engine.execution_options(isolation_level="AUTOCOMMIT")
        )
        self._repeatable_engine = (
            self.engine
            if self._is_sqlite
            else self.engine.execution_options(isolation_level="REPEATABLE READ")
        )
        # SQLite has one writer: threads that queue here wait less than threads that poll its lock.
        self._one_writer = threading.Lock() if self._is_sqlite else nullcontext()

    def of(self, tenant: str) -> Self:
        """Return the same handle, narrowed to the rows of one tenant."""
        narrowed = copy.copy(self)
        narrowed.tenant = tenant
        return narrowed

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Yield a session that may write; commit at the end, roll back on an exception."""
        with (
            self._one_writer,
            TenantSession(self._writing_engine, self.tenant) as session,
            session.begin(),
        ):
            yield session

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        """Yield a session for reading: repeatable on SQLite, read committed on PostgreSQL.

        Raises `TypeError` if it is used to change anything.
        """
        with ReadingSession(self._reading_engine, self.tenant) as session:
            yield session

    @contextmanager
    def repeatable_read(self) -> Iterator[Session]:
        """Yield a session for reading whose queries all see the same data, on PostgreSQL too.

        For what several queries put together: between two of them it may be deleted. Raises
        `TypeError` as `snapshot` does.
        """
        with ReadingSession(self._repeatable_engine, self.tenant) as session:
            yield session

    def dispose(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()


# A NaN that got this far is a mistake to be found here, not by a client's JSON parser.
# Read by `from_json`: in a third of the time, which counts where a result holds a wide matrix.
_as_json = partial(json.dumps, allow_nan=False)


def _create_engine(url: str, silence: float | None) -> Engine:
    # hide_parameters: errors are logged, and what users store has no business in logs.
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        # A host that is gone answers nothing at all; without a limit each attempt takes minutes.
        limits = {
            "connect_timeout": CONNECT_SECONDS,
            "tcp_user_timeout": 1000 * SILENCE_SECONDS,
            "keepalives_idle": SILENCE_SECONDS // 4,
            "keepalives_interval": SILENCE_SECONDS // 4,
            "keepalives_count": 3,
        }
        engine = create_engine(
            url,
            connect_args={k: v for k, v in limits.items() if k not in parsed.query},
            # All are kept: one beyond a smaller pool would be made and closed at every request.
            pool_size=30,
            max_overflow=0,
            json_serializer=_as_json,
            json_deserializer=from_json,
            hide_parameters=True,
        )
        if silence is not None:
            event.listen(engine, "do_connect", Connector(silence))
        event.listen(engine, "connect", _configure_postgresql)
        event.listen(engine, "handle_error", _on_error)
        _test_rested_connections(engine)
        return engine
    if parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        url,
        connect_args={"timeout": SQLITE_BUSY_SECONDS},
        json_serializer=_as_json,
        json_deserializer=from_json,
        hide_parameters=True,
    )
    event.listen(engine, "connect", _configure_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _test_rested_connections(engine: Engine) -> None:
    """Replace connections of a database that restarted while nobody asked, at no request's cost.

    SQLAlchemy's own pre-ping tests at every use, which took a busy API as long as its queries.
    """

    def rest(connection: DBAPIConnection | None, entry: ConnectionPoolEntry) -> None:
        entry.info[_RESTING_SINCE] = time.monotonic()

    def test(
        connection: DBAPIConnection, entry: ConnectionPoolEntry, proxy: PoolProxiedConnection
    ) -> None:
        since = entry.info.get(_RESTING_SINCE)
        if since is None or time.monotonic() - since <= TRUSTED_SECONDS:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise InvalidatePoolError from error  # the pool makes new ones and tries again

    event.listen(engine, "checkin", rest)
    event.listen(engine, "checkout", test)


# What a session of ours asks of the server, which by itself waits for ever, or for two hours.
_PATIENCE_OF_POSTGRESQL = {
    "idle_in_transaction_session_timeout": f"{UNHEARD_SECONDS}s",
    "lock_timeout": f"{LOCK_SECONDS}s",
    # A client that is cut off in the middle of a message is no longer waited for either.
    "tcp_keepalives_idle": f"{SILENCE_SECONDS // 4}",
    "tcp_keepalives_interval": f"{SILENCE_SECONDS // 4}",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": f"{1000 * SILENCE_SECONDS}",
}


def _configure_postgresql(connection: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
    wanted = ", ".join(f"('{name}', '{value}')" for name, value in _PATIENCE_OF_POSTGRESQL.items())
    with closing(connection.cursor()) as cursor:
        # What the URL, the role or the server sets stays.
        cursor.execute(
            f"SELECT set_config(name, value, false) FROM (VALUES {wanted}) AS wanted (name, value)"
            " JOIN pg_settings USING (name) WHERE source = 'default'"
        )
    connection.commit()


# Ended for resting in a transaction, or for a long one; the server became a standby.
_GONE = ("25P03", "25P04", "25006")


def _on_error(context: ExceptionContext) -> Exception | None:
    """Say of a connection that is of no use any more that it is gone.

    The driver has what happened to it for a mistake of ours, and it would be used again.
    """
    if getattr(context.original_exception, "sqlstate", None) not in _GONE:
        return None
    context.is_disconnect = True
    return OperationalError(
        context.statement,
        None,
        context.original_exception,
        hide_parameters=True,
        connection_invalidated=True,
    )


def _configure_sqlite(connection: sqlite3.Connection, entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves, see _begin_sqlite
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")  # an accepted job survives a power cut
    connection.execute("PRAGMA foreign_keys=ON")


def _begin_sqlite(connection: Connection) -> None:
    # A deferred transaction that reads and then writes can fail with "locked" at once, whatever
    # the time-out; one that says at its start that it will write waits its turn instead.
    writes = connection.get_execution_options().get("vnce_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

"""Transactions on SQLite and PostgreSQL."""

import math
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import func, select, text, update
from sqlalchemy.exc import IntegrityError, OperationalError, StatementError
from sqlalchemy.orm import Session

from service.db.blobs import BlobRecord
from service.db.clock import now
from service.db.database import LOCK_SECONDS, UNHEARD_SECONDS, UNREACHABLE, Database
from service.jobs.records import JobRecord


def add_blob(database: Database, blob_id: str) -> None:
    with database.transaction() as session:
        session.add(BlobRecord(id=blob_id, sha256="", size=0))


def blob_ids(database: Database) -> list[str]:
    with database.snapshot() as session:
        return sorted(session.scalars(select(BlobRecord.id)))


def test_transaction_is_kept(database: Database) -> None:
    add_blob(database, "one")
    assert blob_ids(database) == ["one"]


def test_a_commit_waits_for_the_disk(database: Database) -> None:
    # Else a power cut takes what was answered with 202. In SQLite's numbers 2 is FULL.
    asked, expected = {
        "sqlite": ("PRAGMA synchronous", 2),
        "postgresql": ("SHOW synchronous_commit", "on"),
    }[database.engine.dialect.name]
    with database.transaction() as session:
        assert session.scalar(text(asked)) == expected


def fail_in_transaction(database: Database) -> None:
    with database.transaction() as session:
        session.add(BlobRecord(id="one", sha256="", size=0))
        session.flush()
        raise RuntimeError("half-way")


def test_exception_undoes_the_transaction(database: Database) -> None:
    with pytest.raises(RuntimeError, match="half-way"):
        fail_in_transaction(database)
    assert blob_ids(database) == []
    add_blob(database, "two")
    assert blob_ids(database) == ["two"]


def test_an_error_does_not_repeat_what_was_to_be_stored(database: Database) -> None:
    def add() -> None:
        with database.transaction() as session:
            session.add(BlobRecord(id="one", sha256="precious", size=0))

    add()
    with pytest.raises(IntegrityError) as raised:
        add()
    assert "precious" not in str(raised.value)


def test_a_snapshot_refuses_to_change_anything(database: Database) -> None:
    def add(session: Session) -> None:
        session.add(BlobRecord(id="one", sha256="", size=0))
        session.flush()

    def change(session: Session) -> None:
        session.execute(update(BlobRecord).values(size=1))

    for write in (add, change):
        for reading in (database.snapshot(), database.repeatable_read()):
            with reading as session, pytest.raises(TypeError, match="is for reading"):
                write(session)
    assert blob_ids(database) == []


def test_queries_of_a_moment_see_nothing_of_what_is_stored_between_them(database: Database) -> None:
    add_blob(database, "one")
    with database.repeatable_read() as session:
        assert session.scalars(select(BlobRecord.id)).all() == ["one"]
        add_blob(database, "two")
        assert session.scalars(select(BlobRecord.id)).all() == ["one"]
    assert blob_ids(database) == ["one", "two"]


def test_many_threads_write_without_losing_anything(database: Database) -> None:
    with database.transaction() as session:
        session.add(BlobRecord(id="counter", sha256="", size=0))

    def count(_: int) -> None:
        with database.transaction() as session:
            session.execute(update(BlobRecord).values(size=BlobRecord.size + 1))

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(count, range(50)))
    with database.snapshot() as session:
        assert session.get_one(BlobRecord, "counter").size == 50


def test_two_processes_that_write_wait_for_each_other(
    database: Database, database_url: str
) -> None:
    # Another `Database` shares no lock with the first, just as another process would not.
    other = Database(database_url)
    has_begun = threading.Event()

    def write_later() -> None:
        has_begun.set()
        add_blob(other, "second")

    with database.transaction() as session:
        session.add(BlobRecord(id="first", sha256="", size=0))
        session.flush()
        thread = threading.Thread(target=write_later)
        thread.start()
        has_begun.wait()
    thread.join()
    other.dispose()
    assert blob_ids(database) == ["first", "second"]


def test_number_that_json_does_not_have_cannot_be_stored(database: Database) -> None:
    with (
        database.transaction() as session,
        pytest.raises((StatementError, ValueError), match="not JSON compliant"),
    ):
        session.execute(update(JobRecord).values(progress={"objective": math.nan}))


def test_clock_goes_on_within_a_transaction(database: Database) -> None:
    with database.transaction() as session:
        first = session.execute(select(now())).scalar_one()
        threading.Event().wait(0.01)
        second = session.execute(select(now())).scalar_one()
    # SQLite's clock counts milliseconds.
    assert second - first >= 0.009


@pytest.mark.integration
def test_a_host_that_vanishes_is_given_up_unless_the_url_says_otherwise(postgres_url: str) -> None:
    for query, silence in (("", "20000"), ("?tcp_user_timeout=7000", "7000")):
        database = Database(postgres_url + query)
        with database.snapshot() as session:
            connection: Any = session.connection().connection.driver_connection
            used = connection.info.get_parameters()
        database.dispose()
        assert used["tcp_user_timeout"] == silence
        assert used["keepalives_idle"] == "5"


@pytest.mark.integration
def test_a_transaction_that_is_forgotten_lets_go_of_its_locks(postgres_url: str) -> None:
    database = Database(postgres_url)
    with database.snapshot() as session:
        setting = text("SHOW idle_in_transaction_session_timeout")
        assert session.scalar(setting) == f"{UNHEARD_SECONDS}s"
        # The server's side of a connection to a client that has vanished.
        assert session.scalar(text("SHOW tcp_keepalives_idle")) == "5"
        assert session.scalar(text("SHOW tcp_user_timeout")) == "20000"
    database.dispose()
    hasty = Database(f"{postgres_url}?options=-c%20idle_in_transaction_session_timeout%3D200")
    lock = select(func.pg_advisory_xact_lock(1))

    def forget() -> None:
        with hasty.transaction() as forgotten:
            forgotten.execute(lock)
            with hasty.transaction() as session:
                session.execute(lock)
            forgotten.execute(lock)

    # Whoever comes back too late hears that the database does not answer, and may try again.
    with pytest.raises(UNREACHABLE, match="idle-in-transaction"):
        forget()
    with hasty.transaction() as session:
        session.execute(lock)
    hasty.dispose()


@pytest.mark.integration
def test_nobody_waits_for_ever_for_what_another_holds(postgres_url: str) -> None:
    usual = Database(postgres_url)
    with usual.snapshot() as session:
        assert session.scalar(text("SHOW lock_timeout")) == f"{LOCK_SECONDS}s"
    usual.dispose()
    database = Database(f"{postgres_url}?options=-c%20lock_timeout%3D200")
    lock = select(func.pg_advisory_xact_lock(1))

    def wait_for_it() -> None:
        with database.transaction() as session:
            session.execute(lock)

    with database.transaction() as holding:
        holding.execute(lock)
        with pytest.raises(UNREACHABLE, match="lock timeout"):
            wait_for_it()
    wait_for_it()
    database.dispose()


@pytest.mark.integration
def test_a_database_that_has_become_a_standby_is_away(postgres_url: str) -> None:
    database = Database(f"{postgres_url}?options=-c%20default_transaction_read_only%3Don")

    def connection() -> int | None:
        with database.snapshot() as session:
            return session.scalar(select(func.pg_backend_pid()))

    before = connection()
    assert connection() == before
    with pytest.raises(UNREACHABLE, match="read-only transaction"):
        add_blob(database, "one")
    # By another connection one may reach the next primary.
    assert connection() != before
    database.dispose()


@pytest.mark.parametrize("query", ["", "?connect_timeout=2"])
def test_a_host_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    # Two seconds are the least that libpq knows; with "" they must come from our own default.
    monkeypatch.setattr("service.db.database.CONNECT_SECONDS", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        database = Database(f"postgresql+psycopg://user@127.0.0.1:{port}/name{query}")
        with pytest.raises(OperationalError, match="timeout"), database.snapshot() as session:
            session.execute(select(1))


def asked(database: Database, query: str) -> int:
    with database.snapshot() as session:
        return len(session.execute(text(query)).all())


@pytest.mark.integration
def test_a_server_that_answers_nothing_is_given_up_and_asked_again_later(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.db.read_timeout.RETRY_SECONDS", 3600.0)
    database = Database(postgres_url, silence=0.5)
    began = time.monotonic()
    with pytest.raises(UNREACHABLE, match=r"answered nothing for 0\.5 seconds"):
        asked(database, "SELECT pg_sleep(30)")
    assert 0.5 <= time.monotonic() - began < 30
    # Nobody waits behind a server that has just been given up.
    with pytest.raises(UNREACHABLE, match="a moment ago"):
        asked(database, "SELECT 1")
    monkeypatch.setattr("service.db.read_timeout.RETRY_SECONDS", 0.0)
    assert asked(database, "SELECT 1") == 1
    database.dispose()


@pytest.mark.integration
@pytest.mark.parametrize(
    ("silence", "query"),
    [
        # Ten lines, each too long to wait with others for its way.
        (0.5, "SELECT pg_sleep(0.1), repeat('x', 10000) FROM generate_series(1, 10)"),
        (None, "SELECT pg_sleep(0.1) FROM generate_series(1, 10)"),
    ],
)
def test_a_slow_answer_is_waited_for(postgres_url: str, silence: float | None, query: str) -> None:
    database = Database(postgres_url, silence=silence)
    assert asked(database, query) == 10
    database.dispose()


@pytest.mark.integration
def test_a_connection_that_was_cut_while_it_rested_costs_no_request_its_answer(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.db.database.TRUSTED_SECONDS", 0.0)
    database, other = Database(postgres_url), Database(postgres_url)
    query = select(func.pg_backend_pid())
    with database.snapshot() as session:
        cut = session.scalar(query)
    with other.transaction() as session:
        assert session.scalar(select(func.pg_terminate_backend(cut, 5000)))
    with database.snapshot() as session:
        assert session.scalar(query) != cut
    for each in (database, other):
        each.dispose()

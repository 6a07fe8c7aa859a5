"""Containers are well while a process of theirs does its round."""

import pytest
from sqlalchemy import update

from service.db.clock import now
from service.db.database import Database
from service.monitoring import heartbeats
from service.monitoring.heartbeats import ProcessIdentity
from service.monitoring.records import ProcessKind, ProcessRecord
from tests.embedded_postgres import free_port
from worker.processes.health import MAX_AGE_SECONDS, is_alive, main

HOST = heartbeats.this_host()


def beat(database: Database, host: str, age_seconds: float = 0.0) -> None:
    identity = ProcessIdentity(f"process_{host}", ProcessKind.WORKER, host, pid=1, version="1.0")
    with database.transaction() as session:
        heartbeats.beat(session, identity, memory_bytes=None, job_id=None)
        session.flush()
        session.execute(update(ProcessRecord).values(heartbeat_at=now() - age_seconds))


@pytest.mark.parametrize(
    ("host", "age_seconds", "expected"),
    [(HOST, 0.0, True), (HOST, MAX_AGE_SECONDS + 1, False), ("another", 0.0, False)],
)
def test_a_heartbeat_of_this_host_that_is_not_old_decides(
    database: Database, host: str, age_seconds: float, expected: bool
) -> None:
    assert not is_alive(database, HOST)
    beat(database, host, age_seconds)
    assert is_alive(database, HOST) is expected


def test_nobody_is_restarted_because_the_database_is_away() -> None:
    away = Database(f"postgresql+psycopg://user@127.0.0.1:{free_port()}/name")
    assert is_alive(away, HOST)


def test_the_check_fails_where_no_process_tells_of_itself(
    database: Database, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VNCE_DATABASE_URL", sqlite_url)
    monkeypatch.setattr("sys.argv", ["health"])
    with pytest.raises(SystemExit, match=r"no process on .* has told of itself lately"):
        main()
    beat(database, HOST)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0

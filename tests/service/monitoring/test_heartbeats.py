"""Processes that renew their row are live; others are lost, and forgotten in the end."""

from sqlalchemy import update

from service.db.clock import now
from service.db.database import Database
from service.monitoring import heartbeats
from service.monitoring.heartbeats import (
    FORGET_SECONDS,
    LIVE_SECONDS,
    ProcessIdentity,
    ProcessStatus,
)
from service.monitoring.records import ProcessKind, ProcessRecord

WORKER = ProcessIdentity(id="process_1", kind=ProcessKind.WORKER, host="a", pid=1, version="1.0")
DISPATCHER = ProcessIdentity(
    id="process_2", kind=ProcessKind.DISPATCHER, host="a", pid=2, version="1.0"
)


def beat(database: Database, identity: ProcessIdentity, job_id: str | None = None) -> None:
    with database.transaction() as session:
        heartbeats.beat(session, identity, memory_bytes=2**33, job_id=job_id)


def let_pass(database: Database, seconds: float) -> None:
    """Let every process have told of itself that much earlier."""
    with database.transaction() as session:
        session.execute(update(ProcessRecord).values(heartbeat_at=now() - seconds))


def processes(database: Database) -> list[ProcessStatus]:
    with database.snapshot() as session:
        return heartbeats.processes(session)


def num_live(database: Database) -> tuple[int, int]:
    with database.snapshot() as session:
        live = heartbeats.num_live(session)
    return live[ProcessKind.WORKER], live[ProcessKind.DISPATCHER]


def test_a_process_is_on_the_list_once_with_what_it_last_said(database: Database) -> None:
    beat(database, WORKER)
    beat(database, WORKER, job_id="job_1")
    (seen,) = processes(database)
    assert (seen.identity, seen.memory_bytes, seen.job_id) == (WORKER, 2**33, "job_1")
    assert seen.is_live
    assert 0 <= seen.age_seconds < LIVE_SECONDS


def test_live_processes_are_counted_by_what_they_do(database: Database) -> None:
    assert num_live(database) == (0, 0)
    beat(database, WORKER)
    beat(database, DISPATCHER)
    assert num_live(database) == (1, 1)


def test_a_process_that_stops_telling_is_lost_and_live_again_when_it_goes_on(
    database: Database,
) -> None:
    beat(database, WORKER)
    let_pass(database, LIVE_SECONDS + 0.01)
    assert num_live(database) == (0, 0)
    assert [seen.is_live for seen in processes(database)] == [False]
    beat(database, WORKER)
    assert num_live(database) == (1, 0)


def test_a_process_that_leaves_is_off_the_list_at_once(database: Database) -> None:
    beat(database, WORKER)
    beat(database, DISPATCHER)
    with database.transaction() as session:
        heartbeats.leave(session, WORKER.id)
    assert [seen.identity for seen in processes(database)] == [DISPATCHER]


def test_a_lost_process_is_shown_for_a_while_and_then_forgotten(database: Database) -> None:
    def forget() -> int:
        with database.transaction() as session:
            heartbeats.forget_lost(session)
        return len(processes(database))

    beat(database, WORKER)
    let_pass(database, FORGET_SECONDS - 60)
    assert forget() == 1
    let_pass(database, FORGET_SECONDS + 1)
    assert forget() == 0

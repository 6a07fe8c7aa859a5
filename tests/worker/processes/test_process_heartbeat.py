"""A process tells that it is there for as long as it does its round."""

import time
from typing import Any

import pytest
from sqlalchemy.exc import ProgrammingError

from service.db.database import Database
from service.monitoring import heartbeats
from service.monitoring.heartbeats import ProcessStatus
from service.monitoring.records import ProcessKind
from tests.waiting import wait_for
from worker.processes.process_heartbeat import ProcessHeartbeat
from worker.processes.pulse import SILENT_SECONDS, Pulse


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.processes.process_heartbeat.HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr("worker.processes.process_heartbeat.LISTEN_SECONDS", 0.01)


@pytest.fixture
def pulse() -> Pulse:
    """Return the pulse of a process that does its round."""
    pulse = Pulse()
    pulse.touch()
    return pulse


def seen(database: Database) -> list[ProcessStatus]:
    with database.snapshot() as session:
        return heartbeats.processes(session)


def test_a_process_is_on_the_list_while_it_runs(database: Database, pulse: Pulse) -> None:
    with ProcessHeartbeat(database, ProcessKind.WORKER, pulse):
        wait_for(lambda: seen(database))
        (process,) = seen(database)
        assert process.identity.kind is ProcessKind.WORKER
        assert process.memory_bytes is None or process.memory_bytes > 2**20
    assert seen(database) == []


def test_the_job_at_hand_is_named(database: Database, pulse: Pulse) -> None:
    with ProcessHeartbeat(database, ProcessKind.WORKER, pulse) as telling:
        with telling.at_work_on("job_1"):
            wait_for(lambda: [process.job_id for process in seen(database)] == ["job_1"])
        wait_for(lambda: [process.job_id for process in seen(database)] == [None])


def test_a_process_that_does_not_do_its_round_does_not_tell(database: Database) -> None:
    pulse = Pulse()
    with ProcessHeartbeat(database, ProcessKind.WORKER, pulse):
        time.sleep(0.1)
        assert seen(database) == []
        pulse.touch()
        wait_for(lambda: seen(database))


def test_a_database_that_was_away_is_told_again(
    database: Database, leaving_database: Any, pulse: Pulse
) -> None:
    leaving_database.server.is_away = True
    with ProcessHeartbeat(leaving_database, ProcessKind.DISPATCHER, pulse):
        wait_for(lambda: leaving_database.server.num_refused >= 2)
        leaving_database.server.is_away = False
        wait_for(lambda: seen(database))


def test_a_mistake_is_told_and_does_not_keep_it_from_telling_again(
    database: Database,
    pulse: Pulse,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures = [LookupError("a mistake"), ProgrammingError("INSERT", {}, Exception("no table"))]

    def resident_bytes() -> int:
        if failures:
            raise failures.pop()
        return 1

    monkeypatch.setattr("worker.processes.process_heartbeat.resident_bytes", resident_bytes)
    with ProcessHeartbeat(database, ProcessKind.WORKER, pulse):
        wait_for(lambda: seen(database))
    assert caplog.text.count("Traceback") == 2


def test_an_end_is_not_held_up_by_a_database_that_is_away(
    leaving_database: Any, pulse: Pulse
) -> None:
    # For ever: an end that waited for it would never come.
    leaving_database.server.is_away = True
    with ProcessHeartbeat(leaving_database, ProcessKind.WORKER, pulse):
        pass


def test_a_pulse_is_felt_until_it_has_been_silent_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    pulse = Pulse()
    assert not pulse.is_alive()
    pulse.touch()
    assert pulse.is_alive()
    touched = time.monotonic()
    monkeypatch.setattr(
        "worker.processes.pulse.time.monotonic", lambda: touched + SILENT_SECONDS + 1
    )
    assert not pulse.is_alive()

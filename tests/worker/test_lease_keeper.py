import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from service import logs
from service.database import Database
from service.identifiers import new_id
from service.jobs import checkpoints, leases, repository
from service.jobs.leases import Claim
from service.jobs.records import JobRecord, JobState
from vnce_engine.journal import Journal
from vnce_engine.result import FitStep
from worker.endings import StopReason
from worker.lease_keeper import LeaseKeeper
from worker.settings import WorkerSettings
from worker.versions import versions

ReadJob = Callable[[str], JobRecord]
MakeKeeper = Callable[..., LeaseKeeper]


@pytest.fixture
def claim(database: Database, add_job: Callable[..., str]) -> Claim:
    job_id = add_job()
    with database.transaction() as session:
        claim = leases.claim(session, job_id, lease_seconds=30)
    assert claim is not None
    return claim


@pytest.fixture
def make_keeper(
    database: Database, claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., LeaseKeeper]:
    monkeypatch.setattr("worker.lease_keeper.TICK_SECONDS", 0.01)

    def make(**options: Any) -> LeaseKeeper:
        hooks = {
            "is_shutting_down": options.pop("is_shutting_down", lambda: False),
            "end_process": options.pop("end_process", lambda: None),
        }
        on = options.pop("database", database)
        held = options.pop("claim", claim)
        fast = {"heartbeat_seconds": 0.02, "progress_seconds": 0.02, "cancel_grace_seconds": 30}
        return LeaseKeeper(on, held, WorkerSettings(**(fast | options)), **hooks)

    return make


def step(fraction: float, objective: float | None = None) -> FitStep:
    return FitStep(stage="fit", fraction=fraction, iteration=1, objective=objective)


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def request_cancellation(database: Database, job_id: str) -> None:
    with database.transaction() as session:
        assert repository.request_cancellation(session, job_id)


def test_what_the_fit_has_done_is_stored_for_a_later_attempt_and_removed_once_the_job_has_ended(
    make_keeper: MakeKeeper, claim: Claim, database: Database
) -> None:
    def stored() -> bytes | None:
        with database.snapshot() as session:
            return checkpoints.load(session, claim.job_id, versions().vnce)

    journal = Journal()
    with make_keeper(checkpoint_seconds=0.01) as keeper:
        for number in (1.0, 2.0):
            journal.value(partial(torch.tensor, number))
            time.sleep(0.02)
            keeper.report(replace(step(0.25), journal=journal))
            wait_for(lambda: stored() == journal.dump())
    found = stored()
    assert found is not None
    resumed = Journal.load(found)
    assert [float(resumed.value(lambda: torch.zeros(()))) for _ in range(3)] == [1.0, 2.0, 0.0]
    with database.transaction() as session:
        assert checkpoints.load(session, claim.job_id, "another version") is None
        checkpoints.remove_ended(session)
        assert checkpoints.load(session, claim.job_id, versions().vnce) is not None
        assert leases.cancel(session, claim.job_id, claim.token)
        checkpoints.remove_ended(session)
    assert stored() is None


@pytest.mark.parametrize(
    ("hooks", "is_kept"),
    [({"is_shutting_down": lambda: True}, True), ({"job_seconds": 0.01}, False)],
    ids=["shutdown", "time limit"],
)
def test_a_fit_that_is_handed_over_stores_its_last_step_though_no_checkpoint_is_due(
    make_keeper: MakeKeeper, claim: Claim, database: Database, hooks: Any, is_kept: bool
) -> None:
    journal = Journal()
    with make_keeper(checkpoint_seconds=3600, **hooks) as keeper:
        is_to_stop = False
        while not is_to_stop:
            journal.value(lambda: torch.zeros(3))
            time.sleep(0.005)
            is_to_stop = keeper.report(replace(step(0.25), journal=journal))
    with database.snapshot() as session:
        stored = checkpoints.load(session, claim.job_id, versions().vnce)
    assert stored == (journal.dump() if is_kept else None)


def test_what_has_grown_too_large_is_not_stored_over_what_was_there(
    make_keeper: MakeKeeper,
    claim: Claim,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("worker.lease_keeper.MOST_CHECKPOINT_BYTES", 10_000)
    journal = Journal()
    with make_keeper(is_shutting_down=lambda: True) as keeper:
        wait_for(lambda: keeper.report(replace(step(0.25), journal=journal)))
        small = journal.dump()
        journal.value(lambda: torch.zeros(10_000))
        keeper.report(replace(step(0.5), journal=journal))
    with database.snapshot() as session:
        assert checkpoints.load(session, claim.job_id, versions().vnce) == small
    assert "are no checkpoint" in caplog.text


def test_what_has_grown_too_large_is_made_less_and_less_often_and_told_of_once(
    make_keeper: MakeKeeper, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("worker.lease_keeper.MOST_CHECKPOINT_BYTES", 10_000)
    seconds = 0.0
    clock = SimpleNamespace(monotonic=lambda: seconds)
    monkeypatch.setattr("worker.lease_keeper.time", clock)
    journal = Journal()
    journal.value(lambda: torch.zeros(10_000))
    made_at: list[float] = []
    dump = journal.dump

    def note_and_dump() -> bytes:
        made_at.append(seconds)
        return dump()

    monkeypatch.setattr(journal, "dump", note_and_dump)
    keeper = make_keeper(checkpoint_seconds=20)
    for _ in range(400):
        keeper.report(replace(step(0.5), journal=journal))
        seconds += 1
    assert made_at == [20, 60, 140, 300]
    assert caplog.text.count("are no checkpoint") == 1
    # One that has room again is made as often as any.
    monkeypatch.setattr("worker.lease_keeper.MOST_CHECKPOINT_BYTES", 2**20)
    made_at.clear()
    for _ in range(300):
        keeper.report(replace(step(0.5), journal=journal))
        seconds += 1
    assert made_at == [620, 640, 660, 680]


def test_a_checkpoint_that_has_no_room_costs_no_lease(
    make_keeper: MakeKeeper,
    claim: Claim,
    read_job: ReadJob,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*arguments: Any) -> None:
        raise OperationalError("INSERT", {}, Exception("database or disk is full"))

    monkeypatch.setattr("service.jobs.checkpoints.save", fail)
    expires_at = read_job(claim.job_id).lease_expires_at
    assert expires_at is not None
    with make_keeper(checkpoint_seconds=0.01) as keeper:
        time.sleep(0.02)
        assert not keeper.report(replace(step(0.5), journal=Journal()))
        wait_for(lambda: "no checkpoint" in caplog.text)
        wait_for(lambda: (read_job(claim.job_id).lease_expires_at or 0) > expires_at + 0.05)
    assert keeper.stop_reason is None


def test_a_worker_that_lost_its_lease_stores_no_checkpoint(
    make_keeper: MakeKeeper, claim: Claim, database: Database
) -> None:
    stale = replace(claim, token=new_id("lease"))
    with make_keeper(claim=stale, checkpoint_seconds=0.01) as keeper:
        time.sleep(0.02)
        keeper.report(replace(step(0.25), journal=Journal()))
        wait_for(lambda: keeper.stop_reason is StopReason.LEASE_LOST)
    with database.snapshot() as session:
        assert checkpoints.load(session, claim.job_id, versions().vnce) is None


def test_a_lease_that_is_lost_after_its_heartbeat_leaves_no_checkpoint_either(
    make_keeper: MakeKeeper, claim: Claim, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    heartbeat = leases.heartbeat
    num_beats = 0

    def lose_before_the_second(session: Session, *arguments: Any) -> leases.Heartbeat:
        nonlocal num_beats
        num_beats += 1
        if num_beats == 2:  # that by which a checkpoint is stored
            assert leases.release(session, claim.job_id, claim.token)
        return heartbeat(session, *arguments)

    monkeypatch.setattr(leases, "heartbeat", lose_before_the_second)
    keeper = make_keeper(checkpoint_seconds=1e-6)
    # So its first heartbeat has a checkpoint to store.
    keeper.report(replace(step(0.5), journal=Journal()))
    with keeper:
        wait_for(lambda: keeper.stop_reason is StopReason.LEASE_LOST)
    with database.snapshot() as session:
        assert checkpoints.load(session, claim.job_id, versions().vnce) is None


def test_progress_is_stored_while_the_fit_runs(
    make_keeper: MakeKeeper, claim: Claim, read_job: ReadJob
) -> None:
    with make_keeper() as keeper:
        assert keeper.report(step(0.25, objective=-1.5)) is False
        wait_for(lambda: read_job(claim.job_id).progress)
    assert read_job(claim.job_id).progress == {
        "stage": "fit",
        "fraction": 0.25,
        "iteration": 1,
        "objective": -1.5,
    }


def test_the_stored_fraction_never_falls(
    make_keeper: MakeKeeper, claim: Claim, read_job: ReadJob
) -> None:
    def stored() -> float:
        return (read_job(claim.job_id).progress or {}).get("fraction", 0.0)

    with make_keeper() as keeper:
        keeper.report(step(0.5))
        wait_for(lambda: stored() == 0.5)
        keeper.report(FitStep(stage="export", fraction=0.1, iteration=2, objective=None))
        wait_for(lambda: (read_job(claim.job_id).progress or {})["stage"] == "export")
        assert stored() == 0.5


def test_the_lease_is_renewed_for_as_long_as_the_body_runs(
    make_keeper: MakeKeeper, claim: Claim, database: Database, read_job: ReadJob
) -> None:
    def expires_at() -> float:
        return read_job(claim.job_id).lease_expires_at or 0.0

    with make_keeper(lease_seconds=30) as keeper:
        first = expires_at()
        # It lasts longer the longer the body has run.
        for seconds in (0.5, 1.0):
            wait_for(lambda later=first + seconds: expires_at() > later)
        with database.transaction() as session:
            assert leases.claim(session, claim.job_id, lease_seconds=30) is None
        assert keeper.stop_reason is None


def test_a_requested_cancel_stops_the_fit(
    make_keeper: MakeKeeper, claim: Claim, database: Database
) -> None:
    with make_keeper() as keeper:
        request_cancellation(database, claim.job_id)
        wait_for(lambda: keeper.report(step(0.1)))
    assert keeper.stop_reason is StopReason.CANCEL_REQUESTED


def test_a_lost_lease_stops_the_fit(
    make_keeper: MakeKeeper, claim: Claim, database: Database
) -> None:
    with database.transaction() as session:
        assert leases.release(session, claim.job_id, claim.token)
    with make_keeper() as keeper:
        wait_for(lambda: keeper.report(step(0.1)))
    assert keeper.stop_reason is StopReason.LEASE_LOST


def test_a_shutdown_stops_the_fit(make_keeper: MakeKeeper) -> None:
    with make_keeper(is_shutting_down=lambda: True) as keeper:
        wait_for(lambda: keeper.report(step(0.1)))
    assert keeper.stop_reason is StopReason.SHUTDOWN


def test_the_time_limit_stops_the_fit(make_keeper: MakeKeeper) -> None:
    with make_keeper(job_seconds=0.05) as keeper:
        wait_for(lambda: keeper.report(step(0.1)))
    assert keeper.stop_reason is StopReason.TIME_LIMIT


@pytest.mark.parametrize(
    ("hooks", "state", "attempt"),
    [
        ({"is_shutting_down": lambda: True}, JobState.QUEUED, 0),
        ({"job_seconds": 0.01}, JobState.FAILED, 1),
    ],
)
def test_a_fit_that_does_not_stop_ends_with_its_process_after_its_end_was_written(
    make_keeper: MakeKeeper,
    claim: Claim,
    read_job: ReadJob,
    hooks: dict[str, Any],
    state: JobState,
    attempt: int,
) -> None:
    seen: list[JobRecord] = []
    ended = threading.Event()

    def end_process() -> None:
        seen.append(read_job(claim.job_id))
        ended.set()

    with make_keeper(cancel_grace_seconds=0.05, end_process=end_process, **hooks):
        assert ended.wait(10)
    assert (seen[0].state, seen[0].attempt) == (state, attempt)


@pytest.mark.parametrize(("num_retries", "state"), [(0, JobState.QUEUED), (2, JobState.FAILED)])
def test_a_fit_that_holds_too_much_memory_ends_with_its_process_without_grace(
    make_keeper: MakeKeeper,
    claim: Claim,
    database: Database,
    read_job: ReadJob,
    num_retries: int,
    state: JobState,
) -> None:
    for _ in range(num_retries):
        with database.transaction() as session:
            assert leases.retry(session, claim.job_id, claim.token)
            again = leases.claim(session, claim.job_id, lease_seconds=30)
            assert again is not None
            claim = again
    ended = threading.Event()
    with make_keeper(
        claim=claim, job_memory_bytes=1, cancel_grace_seconds=60, end_process=ended.set
    ):
        assert ended.wait(10)
    job = read_job(claim.job_id)
    assert (job.state, job.attempt, job.lease_token) == (state, 1 + num_retries, None)
    assert state is JobState.QUEUED or (job.error or {})["code"] == "out-of-memory"


def test_a_cancelled_fit_that_does_not_stop_is_cancelled_all_the_same(
    make_keeper: MakeKeeper, claim: Claim, database: Database, read_job: ReadJob
) -> None:
    ended = threading.Event()
    with make_keeper(cancel_grace_seconds=0.05, end_process=ended.set):
        request_cancellation(database, claim.job_id)
        assert ended.wait(10)
    assert read_job(claim.job_id).state == JobState.CANCELLED


def test_what_the_keepers_thread_logs_names_the_job_and_its_request(
    make_keeper: MakeKeeper, leaving_database: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.setFormatter(logs.formatter("worker"))
    leaving_database.server.is_away = True
    with (
        logs.bound(job_id="job_1", request_id="abc"),
        make_keeper(database=leaving_database) as keeper,
    ):
        keeper.report(step(0.7))
        wait_for(lambda: leaving_database.server.num_refused >= 2)
    event = json.loads(caplog.text.splitlines()[0])
    assert (event["job_id"], event["request_id"]) == ("job_1", "abc")


def test_heartbeats_outlast_a_database_that_is_away(
    make_keeper: MakeKeeper, claim: Claim, leaving_database: Any, read_job: ReadJob
) -> None:
    leaving_database.server.is_away = True
    with make_keeper(database=leaving_database) as keeper:
        keeper.report(step(0.7))
        wait_for(lambda: leaving_database.server.num_refused >= 3)
        assert keeper.stop_reason is None
        leaving_database.server.is_away = False
        wait_for(lambda: read_job(claim.job_id).progress)


def test_a_fit_whose_keeper_comes_to_grief_is_ended(
    make_keeper: MakeKeeper, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("not foreseen")

    monkeypatch.setattr(leases, "heartbeat", fail)
    has_ended = threading.Event()
    with make_keeper(end_process=has_ended.set):
        assert has_ended.wait(10)
    assert "nothing keeps its lease" in caplog.text
    assert "not foreseen" in caplog.text

"""A lease is renewed and progress told while a fit runs, and what ends it."""

import json
import threading
from typing import Any

import pytest

from service import logs
from service.db.database import Database
from service.jobs import leases
from service.jobs.leases import Claim
from service.jobs.records import JobRecord, JobState
from tests.waiting import PATIENCE_SECONDS, wait_for
from tests.worker.heartbeat.conftest import (
    MakeKeeper,
    ReadJob,
    request_cancellation,
    step,
)
from vnce_engine.runtime.reports import FitStep
from worker.jobs.outcomes import StopReason


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
        assert leases.requeue(session, claim.job_id, claim.token, attempt_counts=False)
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
        assert ended.wait(PATIENCE_SECONDS)
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
            assert leases.requeue(session, claim.job_id, claim.token, attempt_counts=True)
            again = leases.claim(session, claim.job_id, lease_seconds=30)
            assert again is not None
            claim = again
    ended = threading.Event()
    with make_keeper(
        claim=claim, job_memory_bytes=1, cancel_grace_seconds=3600, end_process=ended.set
    ):
        assert ended.wait(PATIENCE_SECONDS)
    job = read_job(claim.job_id)
    assert (job.state, job.attempt, job.lease_token) == (state, 1 + num_retries, None)
    assert state is JobState.QUEUED or (job.error or {})["code"] == "out-of-memory"


def test_a_cancelled_fit_that_does_not_stop_is_cancelled_all_the_same(
    make_keeper: MakeKeeper, claim: Claim, database: Database, read_job: ReadJob
) -> None:
    ended = threading.Event()
    with make_keeper(cancel_grace_seconds=0.05, end_process=ended.set):
        request_cancellation(database, claim.job_id)
        assert ended.wait(PATIENCE_SECONDS)
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
        assert has_ended.wait(PATIENCE_SECONDS)
    assert "lease-renewal thread failed" in caplog.text
    assert "not foreseen" in caplog.text

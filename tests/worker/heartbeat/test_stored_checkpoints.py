"""What a fit has done is stored while its lease is kept."""

import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from service.db.database import Database
from service.db.identifiers import new_id
from service.jobs import checkpoints, leases
from service.jobs.leases import Claim
from tests.waiting import wait_for
from tests.worker.heartbeat.conftest import MakeKeeper, ReadJob, step
from vnce_engine.runtime.checkpoint import Checkpoint
from worker.jobs.outcomes import StopReason
from worker.jobs.versions import versions


def test_what_the_fit_has_done_is_stored_for_a_later_attempt_and_removed_once_the_job_has_ended(
    make_keeper: MakeKeeper, claim: Claim, database: Database
) -> None:
    def stored() -> bytes | None:
        with database.snapshot() as session:
            return checkpoints.load(session, claim.job_id, versions().vnce)

    checkpoint = Checkpoint()
    with make_keeper(checkpoint_seconds=0.01) as keeper:
        for number in (1.0, 2.0):
            checkpoint.once(partial(torch.tensor, number))
            time.sleep(0.02)
            keeper.report(replace(step(0.25), checkpoint=checkpoint))
            wait_for(lambda: stored() == checkpoint.dump())
    found = stored()
    assert found is not None
    resumed = Checkpoint.load(found)
    assert [float(resumed.once(lambda: torch.zeros(()))) for _ in range(3)] == [1.0, 2.0, 0.0]
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
    checkpoint = Checkpoint()
    with make_keeper(checkpoint_seconds=3600, **hooks) as keeper:
        is_to_stop = False
        while not is_to_stop:
            checkpoint.once(lambda: torch.zeros(3))
            time.sleep(0.005)
            is_to_stop = keeper.report(replace(step(0.25), checkpoint=checkpoint))
    with database.snapshot() as session:
        stored = checkpoints.load(session, claim.job_id, versions().vnce)
    assert stored == (checkpoint.dump() if is_kept else None)


def test_what_has_grown_too_large_is_not_stored_over_what_was_there(
    make_keeper: MakeKeeper,
    claim: Claim,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("worker.heartbeat.MOST_CHECKPOINT_BYTES", 10_000)
    checkpoint = Checkpoint()
    with make_keeper(is_shutting_down=lambda: True) as keeper:
        wait_for(lambda: keeper.report(replace(step(0.25), checkpoint=checkpoint)))
        small = checkpoint.dump()
        checkpoint.once(lambda: torch.zeros(10_000))
        keeper.report(replace(step(0.5), checkpoint=checkpoint))
    with database.snapshot() as session:
        assert checkpoints.load(session, claim.job_id, versions().vnce) == small
    assert "exceeds the limit" in caplog.text


def test_what_has_grown_too_large_is_made_less_and_less_often_and_told_of_once(
    make_keeper: MakeKeeper, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("worker.heartbeat.MOST_CHECKPOINT_BYTES", 10_000)
    seconds = 0.0
    clock = SimpleNamespace(monotonic=lambda: seconds)
    monkeypatch.setattr("worker.heartbeat.time", clock)
    checkpoint = Checkpoint()
    checkpoint.once(lambda: torch.zeros(10_000))
    made_at: list[float] = []
    dump = checkpoint.dump

    def note_and_dump() -> bytes:
        made_at.append(seconds)
        return dump()

    monkeypatch.setattr(checkpoint, "dump", note_and_dump)
    keeper = make_keeper(checkpoint_seconds=20)
    for _ in range(400):
        keeper.report(replace(step(0.5), checkpoint=checkpoint))
        seconds += 1
    assert made_at == [20, 60, 140, 300]
    assert caplog.text.count("exceeds the limit") == 1
    # One that has room again is made as often as any.
    monkeypatch.setattr("worker.heartbeat.MOST_CHECKPOINT_BYTES", 2**20)
    made_at.clear()
    for _ in range(300):
        keeper.report(replace(step(0.5), checkpoint=checkpoint))
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
        assert not keeper.report(replace(step(0.5), checkpoint=Checkpoint()))
        wait_for(lambda: "no checkpoint" in caplog.text)
        wait_for(lambda: (read_job(claim.job_id).lease_expires_at or 0) > expires_at + 0.05)
    assert keeper.stop_reason is None


def test_a_worker_that_lost_its_lease_stores_no_checkpoint(
    make_keeper: MakeKeeper, claim: Claim, database: Database
) -> None:
    stale = replace(claim, token=new_id("lease"))
    with make_keeper(claim=stale, checkpoint_seconds=0.01) as keeper:
        time.sleep(0.02)
        keeper.report(replace(step(0.25), checkpoint=Checkpoint()))
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
            assert leases.requeue(session, claim.job_id, claim.token, attempt_counts=False)
        return heartbeat(session, *arguments)

    monkeypatch.setattr(leases, "heartbeat", lose_before_the_second)
    keeper = make_keeper(checkpoint_seconds=1e-6)
    # So its first heartbeat has a checkpoint to store.
    keeper.report(replace(step(0.5), checkpoint=Checkpoint()))
    with keeper:
        wait_for(lambda: keeper.stop_reason is StopReason.LEASE_LOST)
    with database.snapshot() as session:
        assert checkpoints.load(session, claim.job_id, versions().vnce) is None

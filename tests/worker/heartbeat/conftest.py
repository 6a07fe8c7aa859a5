"""Keepers of a lease that beat fast, and what their tests do alike."""

from collections.abc import Callable
from typing import Any

import pytest

from service.db.database import Database
from service.jobs import leases, repository
from service.jobs.leases import Claim
from service.jobs.records import JobRecord
from vnce_engine.runtime.reports import FitStep
from worker.heartbeat import LeaseKeeper
from worker.settings import WorkerSettings

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
    monkeypatch.setattr("worker.heartbeat.TICK_SECONDS", 0.01)

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


def request_cancellation(database: Database, job_id: str) -> None:
    with database.transaction() as session:
        assert repository.request_cancellation(session, job_id)

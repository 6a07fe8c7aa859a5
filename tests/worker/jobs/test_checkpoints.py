"""What an attempt leaves behind, and what the next one makes of it."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from service.db.database import Database
from service.jobs.leases import Claim
from service.jobs.records import CheckpointRecord, JobRecord
from service.jobs.result_records import ResultRecord
from vnce_engine.runtime.reports import FitStep
from worker.jobs import load_job as work
from worker.jobs.estimation import OnStep
from worker.run_job import run_job
from worker.settings import WorkerSettings

ReadJob = Callable[[str], JobRecord]
# No checkpoint is due within these tests but for that of a worker that is told to stop.
SETTINGS = WorkerSettings(
    heartbeat_seconds=0.02, progress_seconds=0.02, cancel_grace_seconds=60, checkpoint_seconds=3600
)


@pytest.fixture
def hand_over(database: Database, job_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the job on a worker that is told to stop at the fit's tenth step."""
    monkeypatch.setattr("worker.heartbeat.TICK_SECONDS", 0.01)
    num_heard = 0

    def load(database: Database, claim: Claim, settings: WorkerSettings) -> work.Work:
        loaded = work.load(database, claim, settings)

        def do(on_step: OnStep) -> Any:
            def slowly(step: FitStep) -> bool | None:
                nonlocal num_heard
                num_heard += step.checkpoint is not None
                if num_heard >= 10:
                    time.sleep(0.05)  # for the other thread to see that the worker is to stop
                return on_step(step)

            return loaded(slowly)

        return do

    run_job(job_id, database, SETTINGS, load=load, is_shutting_down=lambda: num_heard >= 10)


def result(database: Database, job_id: str) -> Any:
    run_job(job_id, database, SETTINGS)
    with database.snapshot() as session:
        stored = session.get(ResultRecord, job_id)
        assert stored is not None
        return stored.document


@pytest.mark.slow
@pytest.mark.usefixtures("hand_over")
def test_a_job_that_was_handed_over_goes_on_where_it_was(
    database: Database, job_id: str, read_job: ReadJob
) -> None:
    assert (read_job(job_id).state, read_job(job_id).attempt) == ("queued", 0)
    assert result(database, job_id)["timing"]["resumed"] is True


def another_version(checkpoint: CheckpointRecord, job: JobRecord) -> None:
    checkpoint.version = "0.0.1"


def damaged_bytes(checkpoint: CheckpointRecord, job: JobRecord) -> None:
    checkpoint.data = checkpoint.data[:-1] + bytes([checkpoint.data[-1] ^ 1])


def another_seed(checkpoint: CheckpointRecord, job: JobRecord) -> None:
    job.spec = {**job.spec, "seed": 2}


def another_penalty(checkpoint: CheckpointRecord, job: JobRecord) -> None:
    job.spec = {**job.spec, "estimator": {**job.spec["estimator"], "penalty": 0.5}}


@pytest.mark.slow
@pytest.mark.usefixtures("hand_over")
@pytest.mark.parametrize("change", [another_version, damaged_bytes, another_seed, another_penalty])
def test_a_checkpoint_of_another_version_or_fit_or_a_damaged_one_is_not_used(
    change: Callable[[CheckpointRecord, JobRecord], None], database: Database, job_id: str
) -> None:
    with database.transaction() as session:
        checkpoint, job = session.get(CheckpointRecord, job_id), session.get(JobRecord, job_id)
        assert checkpoint is not None
        assert job is not None
        change(checkpoint, job)
    assert result(database, job_id)["timing"]["resumed"] is False

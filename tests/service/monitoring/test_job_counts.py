"""Whatever happens to a job is counted once, and stays counted when the job is deleted."""

from typing import Any

import pytest
from sqlalchemy import update

from service.db import counters
from service.db.counters import Counter
from service.db.database import Database
from service.db.identifiers import new_id
from service.http.problems import ProblemCode, problem_document
from service.jobs import leases, lifecycle, reaping, repository
from service.jobs.leases import Claim
from service.jobs.records import JobRecord, JobState
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.specs.experiment import ExperimentPartSpec

FINISHED = Counter.JOBS_FINISHED


@pytest.fixture
def claimed(database: Database) -> Claim:
    """Return a claimed estimation."""
    job_id = add_job(database)
    with database.transaction() as session:
        claim = leases.claim(session, job_id, lease_seconds=30)
    assert claim is not None
    return claim


def add_job(database: Database, **columns: Any) -> str:
    request = EstimationSpec(dataset_id="none", variables=["a", "b"], seed=1)
    spec = request.model_dump(mode="json")
    job = JobRecord(
        **{"id": new_id("job"), "kind": "estimation", "spec": spec, "max_attempts": 1} | columns
    )
    with database.transaction() as session:
        session.add(job)
    return job.id


def counted(database: Database, counter: Counter) -> dict[tuple[str, ...], float]:
    with database.snapshot() as session:
        return counters.totals(session)[counter]


def test_a_claim_is_an_attempt_and_a_lost_race_is_none(database: Database, claimed: Claim) -> None:
    with database.transaction() as session:
        assert leases.claim(session, claimed.job_id, lease_seconds=30) is None
    assert counted(database, Counter.ATTEMPTS) == {("estimation",): 1.0}


def test_a_success_is_counted_with_its_time_under_its_model_and_estimator(
    database: Database, claimed: Claim
) -> None:
    with database.transaction() as session:
        session.execute(update(JobRecord).values(started_at=JobRecord.started_at - 7.0))
        assert leases.succeed(session, claimed.job_id, claimed.token)
    assert counted(database, FINISHED) == {("estimation", "succeeded"): 1.0}
    assert counted(database, Counter.FIT_BUCKET) == {("truncated-gaussian", "vnce", "10.0"): 1.0}
    seconds = counted(database, Counter.FIT_SECONDS)["truncated-gaussian", "vnce"]
    assert 7.0 <= seconds < 10.0


def test_a_time_beyond_the_last_bound_is_counted_too(database: Database, claimed: Claim) -> None:
    with database.transaction() as session:
        session.execute(update(JobRecord).values(started_at=0.0))
        leases.succeed(session, claimed.job_id, claimed.token)
    assert counted(database, Counter.FIT_BUCKET) == {("truncated-gaussian", "vnce", "+Inf"): 1.0}


def test_a_late_finish_counts_nothing(database: Database, claimed: Claim) -> None:
    with database.transaction() as session:
        assert leases.succeed(session, claimed.job_id, claimed.token)
        assert not leases.succeed(session, claimed.job_id, claimed.token)
        assert not leases.cancel(session, claimed.job_id, claimed.token)
    assert counted(database, FINISHED) == {("estimation", "succeeded"): 1.0}


def test_a_failure_and_a_cancel_are_counted_without_a_time(
    database: Database, claimed: Claim
) -> None:
    problem = problem_document(ProblemCode.INTERNAL, "a mistake")
    with database.transaction() as session:
        assert leases.fail(session, claimed.job_id, claimed.token, problem)
    waiting = add_job(database)
    with database.transaction() as session:
        assert repository.request_cancellation(session, waiting)
    expected = {("estimation", "failed"): 1.0, ("estimation", "cancelled"): 1.0}
    assert counted(database, FINISHED) == expected
    assert counted(database, Counter.FIT_SECONDS) == {}


def test_a_running_job_that_is_told_to_stop_is_counted_when_it_has_stopped(
    database: Database, claimed: Claim
) -> None:
    with database.transaction() as session:
        assert repository.request_cancellation(session, claimed.job_id)
    assert counted(database, FINISHED) == {}
    with database.transaction() as session:
        assert leases.requeue(session, claimed.job_id, claimed.token, attempt_counts=False)
    assert counted(database, FINISHED) == {("estimation", "cancelled"): 1.0}


@pytest.mark.parametrize(("max_attempts", "outcome"), [(1, "failed"), (2, "requeued")])
def test_a_lost_lease_is_counted_by_what_became_of_the_job(
    database: Database, max_attempts: int, outcome: str
) -> None:
    job_id = add_job(database, max_attempts=max_attempts)
    with database.transaction() as session:
        leases.claim(session, job_id, lease_seconds=-1)
        reaping.requeue_expired(session)
        reaping.requeue_expired(session)
    assert counted(database, Counter.LEASES_LOST) == {(outcome,): 1.0}
    ended = {("estimation", "failed"): 1.0} if outcome == "failed" else {}
    assert counted(database, FINISHED) == ended


def test_a_lease_that_another_worker_takes_over_is_counted_as_lost(database: Database) -> None:
    job_id = add_job(database, max_attempts=2)
    with database.transaction() as session:
        leases.claim(session, job_id, lease_seconds=-1)
        assert leases.claim(session, job_id, lease_seconds=30) is not None
        reaping.requeue_expired(session)
    assert counted(database, Counter.LEASES_LOST) == {("requeued",): 1.0}


def test_parts_are_counted_as_jobs_and_bear_their_parents_request(database: Database) -> None:
    choices = {"experiment": {"name": "mixture-em"}, "scale": "quick", "seed": 1, "tag": None}
    spec = {"kind": "experiment", **choices}
    part = ExperimentPartSpec.model_validate(
        {"kind": "experiment-part", "part": 0, "label": "one", **choices}
    )
    parent_id = add_job(database, kind="experiment", spec=spec, request_id="abc")
    with database.transaction() as session:
        claim = leases.claim(session, parent_id, lease_seconds=30)
        assert claim is not None
        assert leases.split(session, parent_id, claim.token, [part, part])
    assert counted(database, Counter.JOBS_SUBMITTED) == {("experiment-part",): 2.0}
    with database.transaction() as session:
        assert repository.request_cancellation(session, parent_id)
    assert counted(database, FINISHED) == {
        ("experiment", "cancelled"): 1.0,
        ("experiment-part", "cancelled"): 2.0,
    }
    with database.snapshot() as session:
        parts = session.query(JobRecord).where(JobRecord.parent_id == parent_id).all()
    assert [part.request_id for part in parts] == ["abc", "abc"]


def test_a_deleted_job_stays_counted(database: Database, claimed: Claim) -> None:
    with database.transaction() as session:
        assert leases.cancel(session, claimed.job_id, claimed.token)
        lifecycle.remove(session, claimed.job_id)
    assert counted(database, FINISHED) == {("estimation", JobState.CANCELLED): 1.0}

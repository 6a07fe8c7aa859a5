"""Jobs whose worker or message is gone go on, or end with a reason."""

from collections.abc import Callable

import pytest
from sqlalchemy import update

from service.db.clock import now
from service.db.database import Database
from service.http.problems import Problem, ProblemCode
from service.jobs import leases, reaping, repository
from service.jobs.reaping import Reaped
from service.jobs.records import JobRecord, JobState
from tests.service.jobs.messages import send, to_be_sent

AddJob = Callable[..., str]
ReadJob = Callable[[str], JobRecord]
LEASE = 30.0
# A lease that has run out when it is given.
RUN_OUT = -1.0


def claim(database: Database, job_id: str, lease_seconds: float) -> None:
    with database.transaction() as session:
        assert leases.claim(session, job_id, lease_seconds) is not None


def requeue_expired(database: Database) -> Reaped:
    with database.transaction() as session:
        return reaping.requeue_expired(session)


def test_job_of_a_lost_worker_waits_for_another(
    database: Database, add_job: AddJob, read_job: ReadJob
) -> None:
    job_id = add_job()
    with database.transaction() as session:
        taken = leases.claim(session, job_id, LEASE)
        assert taken is not None
        progress = leases.Progress(stage="fit", fraction=0.5, iteration=3, objective=None)
        leases.heartbeat(session, job_id, taken.token, RUN_OUT, progress)
    send(database)
    assert requeue_expired(database) == Reaped(requeued=[job_id], failed=[], cancelled=[])
    job = read_job(job_id)
    assert (job.state, job.attempt, job.lease_token) == (JobState.QUEUED, 1, None)
    assert (job.progress, job.progress_at) == (None, None)
    assert to_be_sent(database) == [job_id]


def test_job_under_a_live_lease_is_left_alone(
    database: Database, add_job: AddJob, read_job: ReadJob
) -> None:
    job_id = add_job()
    claim(database, job_id, LEASE)
    assert requeue_expired(database) == Reaped(requeued=[], failed=[], cancelled=[])
    assert read_job(job_id).state == JobState.RUNNING


def test_job_that_has_lost_its_last_worker_fails_with_the_reason(
    database: Database, add_job: AddJob, read_job: ReadJob
) -> None:
    job_id = add_job(max_attempts=2)
    claim(database, job_id, RUN_OUT)
    requeue_expired(database)
    claim(database, job_id, RUN_OUT)
    assert requeue_expired(database) == Reaped(requeued=[], failed=[job_id], cancelled=[])
    job = read_job(job_id)
    assert job.state == JobState.FAILED
    problem = Problem.model_validate(job.error)
    assert problem.code == ProblemCode.WORKER_LOST
    assert problem.instance == f"/v1/jobs/{job_id}"


def test_lost_job_that_was_to_be_cancelled_is_cancelled(
    database: Database, add_job: AddJob, read_job: ReadJob
) -> None:
    job_id = add_job(max_attempts=1)
    claim(database, job_id, RUN_OUT)
    with database.transaction() as session:
        repository.request_cancellation(session, job_id)
    assert requeue_expired(database) == Reaped(requeued=[], failed=[], cancelled=[job_id])
    assert read_job(job_id).state == JobState.CANCELLED


def stale_messages(database: Database) -> list[str]:
    with database.transaction() as session:
        return reaping.resend_stale(session, 60, num_in_queue=0)


def lose_and_rewrite_the_message(database: Database, job_id: str) -> None:
    """Lose the job's message and have another sent once it is old."""
    send(database)
    with database.transaction() as session:
        session.execute(update(JobRecord).values(sent_at=now() - 61))
    assert stale_messages(database) == [job_id]


def test_lost_message_is_written_again_once_it_is_old(database: Database, add_job: AddJob) -> None:
    job_id = add_job()
    lose_and_rewrite_the_message(database, job_id)
    assert stale_messages(database) == []
    assert to_be_sent(database) == [job_id]


def test_a_message_that_was_written_again_has_its_time_to_arrive(
    database: Database, add_job: AddJob
) -> None:
    lose_and_rewrite_the_message(database, add_job())
    send(database)
    assert stale_messages(database) == []


@pytest.mark.slow
def test_message_that_may_still_arrive_is_not_written_again(
    database: Database, add_job: AddJob
) -> None:
    add_job()
    send(database)
    assert stale_messages(database) == []
    assert to_be_sent(database) == []


def test_message_that_waits_in_the_outbox_is_not_doubled(
    database: Database, add_job: AddJob
) -> None:
    job_id = add_job()
    with database.transaction() as session:
        session.execute(update(JobRecord).values(woken_at=now() - 61))
        assert reaping.resend_stale(session, 60, num_in_queue=0) == []
    assert to_be_sent(database) == [job_id]


def test_as_many_messages_are_written_again_as_the_queue_lacks_those_sent_first_first(
    database: Database, add_job: AddJob
) -> None:
    job_ids = [add_job() for _ in range(4)]
    send(database)
    with database.transaction() as session:
        for age, job_id in enumerate(reversed(job_ids)):
            aged = update(JobRecord).where(JobRecord.id == job_id)
            session.execute(aged.values(sent_at=now() - 61 - age))
        assert reaping.resend_stale(session, 60, num_in_queue=4) == []
        assert reaping.resend_stale(session, 60, num_in_queue=3) == job_ids[:1]
        # Its new message is not in the queue yet.
        assert reaping.resend_stale(session, 60, num_in_queue=3) == []
        assert reaping.resend_stale(session, 60, num_in_queue=0) == job_ids[1:]


def test_running_job_gets_no_message(database: Database, add_job: AddJob) -> None:
    claim(database, add_job(), LEASE)
    send(database)
    with database.transaction() as session:
        session.execute(update(JobRecord).values(sent_at=now() - 61))
        assert reaping.resend_stale(session, 60, num_in_queue=0) == []

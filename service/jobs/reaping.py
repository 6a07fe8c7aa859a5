"""What is done about jobs whose worker or whose message is gone; run every few seconds."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, case, exists, func, null, select, update
from sqlalchemy.orm import Session

from service.clock import now
from service.jobs import family, outbox
from service.jobs.records import JobRecord, JobState, OutboxRecord
from service.metrics import job_counts
from service.problems import ProblemCode, problem_document


@dataclass(frozen=True)
class Reaped:
    """Ids of the jobs whose lease had run out, by what became of them."""

    requeued: list[str]
    failed: list[str]
    cancelled: list[str]


def requeue_expired(session: Session) -> Reaped:
    """Give every job whose lease has run out to another worker, or end it.

    It ends cancelled if that was asked for, and failed with `worker-lost` if no attempt is left.
    """
    cancelled = _cancel_expired(session)
    failed = _fail_expired(session)
    job_counts.finished(session, [*cancelled, *failed])
    for job_id in (*cancelled, *failed):
        family.part_ended(session, job_id)
    requeued = session.scalars(
        update(JobRecord)
        .where(_has_run_out(), JobRecord.attempt < JobRecord.max_attempts)
        .values(
            # One that was split stays what it is: its parts have ended, and any worker may take it.
            state=case((JobRecord.is_split, JobState.RUNNING), else_=JobState.QUEUED),
            lease_token=None,
            lease_expires_at=None,
            progress=null(),
            progress_at=None,
        )
        .returning(JobRecord.id)
        .execution_options(synchronize_session=False)
    ).all()
    outbox.wake(session, requeued)
    reaped = Reaped(requeued=list(requeued), failed=failed, cancelled=cancelled)
    for outcome, job_ids in vars(reaped).items():
        job_counts.lost(session, outcome, len(job_ids))
    return reaped


def resend_stale(session: Session, older_than_seconds: float, num_in_queue: int) -> list[str]:
    """Wake jobs that have waited for so long since their last message; return their ids.

    Jobs may rightly wait for hours behind others. Only a queue that is shorter than the list of
    jobs that wait in it has lost messages: as many jobs are woken as it lacks, those first that
    were woken first, since theirs left the queue first. Jobs with a message still to be sent are
    left alone. A job that was split waits from the moment when its last part ended.
    """
    has_message = exists().where(OutboxRecord.job_id == JobRecord.id)
    waits_in_queue = family.waits() & ~has_message
    num_waiting = session.scalar(select(func.count()).select_from(JobRecord).where(waits_in_queue))
    stale = session.scalars(
        select(JobRecord.id)
        .where(waits_in_queue, JobRecord.woken_at < now() - older_than_seconds)
        .order_by(JobRecord.woken_at)
        .limit(max((num_waiting or 0) - num_in_queue, 0))
        # A second reaper waits here, and then finds that they were woken a moment ago.
        .with_for_update(of=JobRecord)
    ).all()
    outbox.wake(session, stale)
    return list(stale)


def _has_run_out() -> ColumnElement[bool]:
    return (JobRecord.state == JobState.RUNNING) & (JobRecord.lease_expires_at < now())


def _cancel_expired(session: Session) -> list[str]:
    return list(
        session.scalars(
            update(JobRecord)
            .where(_has_run_out(), JobRecord.cancel_requested_at.is_not(None))
            .values(
                state=JobState.CANCELLED,
                finished_at=now(),
                lease_token=None,
                lease_expires_at=None,
            )
            .returning(JobRecord.id)
            .execution_options(synchronize_session=False)
        )
    )


def _fail_expired(session: Session) -> list[str]:
    out_of_attempts = (_has_run_out(), JobRecord.attempt >= JobRecord.max_attempts)
    lost = session.execute(select(JobRecord.id, JobRecord.attempt).where(*out_of_attempts)).all()
    failed: list[str] = []
    for job_id, attempt in lost:
        problem = problem_document(
            ProblemCode.WORKER_LOST,
            f"The worker process was lost {attempt} times while it ran this job, and no attempt "
            "is left. The job may need more memory than a worker has: try fewer variables or rows.",
            instance=f"/v1/jobs/{job_id}",
        )
        ended = session.execute(
            update(JobRecord)
            .where(JobRecord.id == job_id, *out_of_attempts)
            .values(
                state=JobState.FAILED,
                error=problem.model_dump(mode="json"),
                finished_at=now(),
                lease_token=None,
                lease_expires_at=None,
            )
            .returning(JobRecord.id)
            .execution_options(synchronize_session=False)
        )
        failed.extend(ended.scalars())
    return failed

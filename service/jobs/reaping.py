"""What is done about jobs whose worker or whose message is gone; run every few seconds."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, case, exists, func, null, select, update
from sqlalchemy.orm import Session

from service.db.clock import now
from service.http.problems import ProblemCode, problem_document
from service.jobs import job_parts, job_counts, outbox
from service.jobs.records import JobRecord, JobState, OutboxRecord

# A transaction that locks more jobs would keep others waiting.
_WOKEN_AT_ONCE = 1_000


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
    expired = session.scalars(select(JobRecord.id).where(_has_run_out())).all()
    # Those whose worker has been heard of meanwhile are left alone; so are, for now, held ones.
    mine = JobRecord.id.in_(job_parts.lock_free(session, expired)) & _has_run_out()
    cancelled = _cancel_expired(session, mine)
    failed = _fail_expired(session, mine)
    job_counts.finished(session, [*cancelled, *failed])
    for job_id in (*cancelled, *failed):
        job_parts.part_ended(session, job_id)
    requeued = session.scalars(
        update(JobRecord)
        .where(mine, JobRecord.attempt < JobRecord.max_attempts)
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
    left alone. A job that was split waits from the moment when its last part ended. Where very
    many are to be woken, the rest comes next time.
    """
    has_message = exists().where(OutboxRecord.job_id == JobRecord.id)
    waits_in_queue = job_parts.waits() & ~has_message
    num_waiting = session.scalar(select(func.count()).select_from(JobRecord).where(waits_in_queue))
    is_stale = waits_in_queue & (JobRecord.woken_at < now() - older_than_seconds)
    num_lost = max((num_waiting or 0) - num_in_queue, 0)
    oldest_first = select(JobRecord.id).where(is_stale).order_by(JobRecord.woken_at)
    stale = session.scalars(oldest_first.limit(min(num_lost, _WOKEN_AT_ONCE))).all()
    # Those that a second reaper has at this moment, or has just woken, are left out.
    locked = job_parts.lock_free(session, stale)
    woken = session.scalars(oldest_first.where(JobRecord.id.in_(locked))).all()
    outbox.wake(session, woken)
    return list(woken)


def _has_run_out() -> ColumnElement[bool]:
    return (JobRecord.state == JobState.RUNNING) & (JobRecord.lease_expires_at < now())


def _cancel_expired(session: Session, expired: ColumnElement[bool]) -> list[str]:
    return list(
        session.scalars(
            update(JobRecord)
            .where(expired, JobRecord.cancel_requested_at.is_not(None))
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


def _fail_expired(session: Session, expired: ColumnElement[bool]) -> list[str]:
    out_of_attempts = (expired, JobRecord.attempt >= JobRecord.max_attempts)
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

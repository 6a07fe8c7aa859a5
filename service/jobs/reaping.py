"""What is done about jobs whose worker or whose message is gone; run every few seconds."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.orm import Session

from service.db.clock import now
from service.http.problems import ProblemCode, problem_document
from service.jobs import attempts, job_counts, job_parts, leases, outbox
from service.jobs.records import JobRecord, JobState

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
    expired = session.scalars(select(JobRecord.id).where(leases.has_run_out())).all()
    # Those whose worker has been heard of meanwhile are left alone; so are, for now, held ones.
    mine = JobRecord.id.in_(job_parts.lock_free(session, expired)) & leases.has_run_out()
    failed = _fail_without_attempts(session, mine)
    states = attempts.requeue(session, mine)
    cancelled = [job_id for job_id, state in states.items() if state == JobState.CANCELLED]
    requeued = [job_id for job_id, state in states.items() if state != JobState.CANCELLED]
    reaped = Reaped(requeued=requeued, failed=failed, cancelled=cancelled)
    for outcome, job_ids in vars(reaped).items():
        job_counts.lost(session, outcome, len(job_ids))
    return reaped


def resend_stale(session: Session, older_than_seconds: float, num_in_queue: int) -> list[str]:
    """Wake jobs that have waited for so long since their message was sent; return their ids.

    Jobs may rightly wait for hours behind others. Only a queue that is shorter than the list of
    jobs that wait in it has lost messages: as many jobs are woken as it lacks, those first whose
    messages were sent first, since these left the queue first. Jobs with a message still to be sent
    are left alone. A job that was split waits from the moment when its last part ended. Where very
    many are to be woken, the rest comes next time.
    """
    waits_in_queue = job_parts.waits() & JobRecord.send_after.is_(None)
    num_waiting = session.scalar(select(func.count()).select_from(JobRecord).where(waits_in_queue))
    is_stale = waits_in_queue & (JobRecord.sent_at < now() - older_than_seconds)
    num_lost = max((num_waiting or 0) - num_in_queue, 0)
    oldest_first = select(JobRecord.id).where(is_stale).order_by(JobRecord.sent_at)
    stale = session.scalars(oldest_first.limit(min(num_lost, _WOKEN_AT_ONCE))).all()
    # Those that a second reaper has at this moment, or has just woken, are left out.
    locked = job_parts.lock_free(session, stale)
    woken = session.scalars(oldest_first.where(JobRecord.id.in_(locked))).all()
    outbox.wake(session, woken)
    return list(woken)


def _fail_without_attempts(session: Session, lost: ColumnElement[bool]) -> list[str]:
    is_at_its_end = and_(
        lost,
        JobRecord.attempt >= JobRecord.max_attempts,
        JobRecord.cancel_requested_at.is_(None),
    )
    at_their_end = session.execute(select(JobRecord.id, JobRecord.attempt).where(is_at_its_end))
    failed: list[str] = []
    for job_id, attempt in at_their_end.all():
        problem = problem_document(
            ProblemCode.WORKER_LOST,
            f"The worker process was lost {attempt} times while it ran this job, and no attempt "
            "is left. The job may need more memory than a worker has: try fewer variables or rows.",
            instance=f"/v1/jobs/{job_id}",
        )
        this = is_at_its_end & (JobRecord.id == job_id)
        error = problem.model_dump(mode="json")
        failed += attempts.end(session, this, JobState.FAILED, error=error)
    return failed

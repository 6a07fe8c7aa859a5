"""SQL of jobs as the API asks for it; what workers do to them is in `leases`."""

from dataclasses import dataclass

from sqlalchemy import case, delete, select, tuple_, update
from sqlalchemy.orm import Session

from service.clock import now
from service.identifiers import is_id
from service.jobs.records import IdempotencyRecord, JobRecord, JobState
from service.jobs.vocabulary import JobKind


@dataclass(frozen=True)
class JobFilter:
    """Which jobs are listed; None means any."""

    state: JobState | None
    kind: JobKind | None
    dataset_id: str | None
    tag: str | None


def get(session: Session, job_id: str) -> JobRecord | None:
    """Return the job, or None."""
    return session.get(JobRecord, job_id) if is_id(job_id) else None


def newest(
    session: Session, wanted: JobFilter, limit: int, before: tuple[float, str] | None
) -> list[JobRecord]:
    """Return at most `limit` jobs, newest first, those before the place (created_at, id)."""
    query = select(JobRecord).order_by(JobRecord.created_at.desc(), JobRecord.id.desc())
    for column, value in (
        (JobRecord.state, wanted.state),
        (JobRecord.kind, wanted.kind),
        (JobRecord.dataset_id, wanted.dataset_id),
        (JobRecord.tag, wanted.tag),
    ):
        if value is not None:
            query = query.where(column == value)
    if before is not None:
        query = query.where(tuple_(JobRecord.created_at, JobRecord.id) < before)
    return list(session.scalars(query.limit(limit)))


def find_by_key(session: Session, key: str) -> IdempotencyRecord | None:
    """Return what a client's `Idempotency-Key` has made, or None."""
    return session.get(IdempotencyRecord, key)


def request_cancellation(session: Session, job_id: str) -> bool:
    """End a waiting job as cancelled, flag a running one; False if neither applies."""
    waits = JobRecord.state == JobState.QUEUED
    changed = session.execute(
        update(JobRecord)
        .where(JobRecord.id == job_id, JobRecord.state.in_([JobState.QUEUED, JobState.RUNNING]))
        .values(
            state=case((waits, JobState.CANCELLED), else_=JobRecord.state),
            finished_at=case((waits, now()), else_=None),
            cancel_requested_at=case(
                (JobRecord.cancel_requested_at.is_(None), now()),
                else_=JobRecord.cancel_requested_at,
            ),
        )
        .returning(JobRecord.id)
        .execution_options(synchronize_session=False)
    )
    return changed.one_or_none() is not None


def remove_if_terminal(session: Session, job_id: str) -> bool:
    """Delete the job's row, message and key; False if it is not in a final state."""
    final = [state for state in JobState if state.is_terminal]
    removed = session.execute(
        delete(JobRecord)
        .where(JobRecord.id == job_id, JobRecord.state.in_(final))
        .returning(JobRecord.id)
        .execution_options(synchronize_session=False)
    )
    return removed.one_or_none() is not None

"""SQL of jobs as the API asks for it; what workers do to them is in `leases`."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, case, delete, literal, select, tuple_, update
from sqlalchemy.orm import Session

from service.db.clock import now
from service.db.identifiers import is_id
from service.jobs import job_counts, job_parts
from service.jobs.records import UNFINISHED, IdempotencyRecord, JobRecord, JobState
from service.jobs.vocabulary import PART_KINDS, JobKind


@dataclass(frozen=True)
class JobFilter:
    """Which jobs are listed; None means any."""

    state: JobState | None
    kind: JobKind | None
    dataset_id: str | None
    tag: str | None
    # Whose parts are listed; None: only jobs that are part of no other, or all of that kind.
    parent_id: str | None


def get(session: Session, job_id: str) -> JobRecord | None:
    """Return the job, or None."""
    return session.get(JobRecord, job_id) if is_id(job_id) else None


def newest(
    session: Session, wanted: JobFilter, limit: int, before: tuple[float, str] | None
) -> list[JobRecord]:
    """Return at most `limit` jobs, newest first, those before the place (created_at, id)."""
    query = select(JobRecord).order_by(JobRecord.created_at.desc(), JobRecord.id.desc())
    # Whoever asks for such a kind asks for parts, of all jobs if no parent is named.
    if wanted.parent_id is not None or wanted.kind not in PART_KINDS:
        query = query.where(JobRecord.parent_id.is_not_distinct_from(wanted.parent_id))
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
    return session.scalars(
        select(IdempotencyRecord).where(IdempotencyRecord.key == key)
    ).one_or_none()


def has_unfinished(session: Session, api_key_id: str | None, number: int) -> bool:
    """Return whether so many jobs of an API key wait or run; parts do not count."""
    # Nothing but what the index holds is asked for.
    unfinished = select(literal(1)).where(
        JobRecord.api_key_id.is_not_distinct_from(api_key_id),
        JobRecord.state.in_(UNFINISHED),
        JobRecord.parent_id.is_(None),
    )
    return session.scalar(unfinished.offset(number - 1).limit(1)) is not None


def request_cancellation(session: Session, job_id: str) -> bool:
    """End a waiting job as cancelled, flag a running one; False if neither applies.

    Its parts, if it has any, are treated alike.
    """
    job_parts.lock(session, [job_id])
    changed = _cancel(session, JobRecord.id == job_id)
    if changed:
        job_parts.lock_parts(session, job_id)
        _cancel(session, JobRecord.parent_id == job_id)
        job_parts.part_ended(session, job_id)
    return changed


def _cancel(session: Session, which: ColumnElement[bool]) -> bool:
    # In no worker's hands.
    waits = (JobRecord.state == JobState.QUEUED) | job_parts.waits_for_parts()
    changed = session.execute(
        update(JobRecord)
        .where(which, JobRecord.state.in_(UNFINISHED))
        .values(
            state=case((waits, JobState.CANCELLED), else_=JobRecord.state),
            finished_at=case((waits, now()), else_=None),
            send_after=None,
            cancel_requested_at=case(
                (JobRecord.cancel_requested_at.is_(None), now()),
                else_=JobRecord.cancel_requested_at,
            ),
        )
        .returning(JobRecord.id, JobRecord.state)
        .execution_options(synchronize_session=False)
    ).all()
    job_counts.finished(session, [job.id for job in changed if job.state == JobState.CANCELLED])
    return bool(changed)


def remove(session: Session, job_id: str) -> None:
    """Delete the rows and keys of a job that is locked, and those of its parts."""
    session.execute(
        delete(JobRecord)
        .where((JobRecord.id == job_id) | (JobRecord.parent_id == job_id))
        .execution_options(synchronize_session=False)
    )

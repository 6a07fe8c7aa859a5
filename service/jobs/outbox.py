"""Wake-up messages: written with the job's change, sent to the broker off the request path.

A message holds a job's id and nothing else. It may be sent twice or for a job that has ended:
the claim decides, the message only hints.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from service.clock import now
from service.jobs.records import JobRecord, OutboxRecord


class WakeUp(NamedTuple):
    """A message that waits to be sent."""

    id: int
    job_id: str


def wake(session: Session, job_ids: Sequence[str]) -> None:
    """Write one message a job, in the session's transaction."""
    if not job_ids:
        return
    session.execute(insert(OutboxRecord), [{"job_id": job_id} for job_id in job_ids])
    session.execute(
        update(JobRecord)
        .where(JobRecord.id.in_(job_ids))
        .values(woken_at=now())
        .execution_options(synchronize_session=False)
    )


def pending(session: Session, limit: int) -> list[WakeUp]:
    """Return the oldest messages, at most `limit`.

    On PostgreSQL they stay locked until the transaction ends, and another dispatcher passes
    over them.
    """
    rows = session.execute(
        select(OutboxRecord.id, OutboxRecord.job_id)
        .order_by(OutboxRecord.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return [WakeUp(id=row.id, job_id=row.job_id) for row in rows]


def sent(session: Session, ids: Sequence[int]) -> None:
    """Delete messages that the broker has taken."""
    session.execute(delete(OutboxRecord).where(OutboxRecord.id.in_(ids)))

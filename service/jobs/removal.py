"""Deleted jobs of so many parts that removing their rows takes a while.

One transaction makes such a job and its parts nobody's, and for every tenant they are gone. Then
the dispatcher removes nobody's jobs bit by bit, so that others may write between: SQLite has one
writer, which tens of thousands of parts with their files would keep for half a minute.
"""

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from service.db.tenant_names import NOBODY
from service.jobs import result_removal as results
from service.jobs.records import IdempotencyRecord, JobRecord

# Removed in a tenth to a quarter of a second.
MOST_AT_ONCE = 100


def hide(session: Session, job_id: str) -> None:
    """Make a job and its parts, all of them locked, nobody's."""
    session.execute(
        update(JobRecord)
        .where((JobRecord.id == job_id) | (JobRecord.parent_id == job_id))
        # No data set is in use by it any more.
        .values(tenant=NOBODY, dataset_id=None)
        .execution_options(synchronize_session=False)
    )
    session.execute(delete(IdempotencyRecord).where(IdempotencyRecord.job_id == job_id))


def remove_hidden(session: Session) -> int:
    """Remove some of nobody's jobs with all that they have left; return how many.

    Those that another transaction has at hand are left for later.
    """
    query = select(JobRecord.id).where(JobRecord.tenant == NOBODY)
    # As the index has them.
    oldest_first = query.order_by(JobRecord.created_at, JobRecord.id).limit(MOST_AT_ONCE)
    job_ids = session.scalars(oldest_first.with_for_update(skip_locked=True)).all()
    for job_id in sorted(job_ids):
        results.remove(session, job_id)
    session.execute(
        delete(JobRecord)
        .where(JobRecord.id.in_(job_ids))
        .execution_options(synchronize_session=False)
    )
    return len(job_ids)

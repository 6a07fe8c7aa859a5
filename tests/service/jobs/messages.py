"""What is in the outbox, and a dispatcher's round without a broker."""

from sqlalchemy import select

from service.db.database import Database
from service.jobs import outbox
from service.jobs.records import JobRecord


def to_be_sent(database: Database) -> list[str]:
    """Return the jobs whose message is to be sent, due or not, oldest first."""
    unsent = select(JobRecord.id).where(JobRecord.send_after.is_not(None))
    with database.snapshot() as session:
        return list(session.scalars(unsent.order_by(JobRecord.woken_at, JobRecord.id)))


def send(database: Database, most: int | None = None, limit: int = 100) -> list[str]:
    """Do a dispatcher's round; return the jobs whose messages it sends."""
    with database.transaction() as session:
        batch = outbox.reserve(session, limit, most)
    with database.transaction() as session:
        outbox.settle(session, batch, len(batch.job_ids))
    return batch.job_ids

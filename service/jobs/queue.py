"""The queue as its rows tell it: how long it is, how old, and what is being done about it."""

from collections import Counter
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.clock import now
from service.jobs import places
from service.jobs.records import JobRecord, JobState, OutboxRecord


@dataclass(frozen=True)
class Queue:
    """Jobs that have not ended, and messages that wait to be sent."""

    queued: int
    # In a worker's hands.
    running: int
    # Running too, but only by way of their parts.
    split: int
    # How long the longest waiting job has waited since it was submitted or last run.
    oldest_queued_seconds: float
    # Jobs whose worker has not renewed its lease and which the reaper has not yet seen to.
    expired_leases: int
    outbox: int
    oldest_outbox_seconds: float


def look(session: Session, most_running: int | None) -> Queue:
    """Return the queue of this moment; ages are 0 where nothing waits.

    Messages that wait for a place of their tenant's, of `most_running`, are not among those to be
    sent.
    """
    running = JobRecord.state == JobState.RUNNING
    states = session.execute(
        select(
            func.count().filter(JobRecord.state == JobState.QUEUED),
            func.count().filter(running, JobRecord.lease_token.is_not(None)),
            func.count().filter(running, JobRecord.lease_token.is_(None)),
            func.count().filter(running, JobRecord.lease_expires_at < now()),
            now()
            - func.min(func.coalesce(JobRecord.started_at, JobRecord.created_at)).filter(
                JobRecord.state == JobState.QUEUED
            ),
        ).where(JobRecord.state.in_([JobState.QUEUED, JobState.RUNNING]))
    ).one()
    used = places.taken(session) if most_running is not None else Counter[str]()
    outbox = session.execute(
        select(func.count(), now() - func.min(OutboxRecord.created_at))
        .select_from(OutboxRecord)
        .join(JobRecord, JobRecord.id == OutboxRecord.job_id)
        .where(places.need_not_wait(used, most_running))
    ).one()
    queued, held, split, expired, oldest = states
    return Queue(
        queued=queued,
        running=held,
        split=split,
        oldest_queued_seconds=max(oldest or 0.0, 0.0),
        expired_leases=expired,
        outbox=outbox[0],
        oldest_outbox_seconds=max(outbox[1] or 0.0, 0.0),
    )

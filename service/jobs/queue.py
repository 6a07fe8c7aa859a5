"""The queue as its rows tell it: how long it is, how old, and what is being done about it."""

from collections import Counter
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.db.clock import now
from service.jobs import tenant_slots
from service.jobs.records import UNFINISHED, JobRecord, JobState


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

    Messages of a tenant with more jobs than slots, of which there are `most_running`, are not
    among those to be sent. Some could be until the dispatcher's next round, several times a second
    where jobs are short, and would be as old as all that wait.
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
        ).where(JobRecord.state.in_(UNFINISHED))
    ).one()
    used = tenant_slots.used(session) if most_running is not None else Counter[str]()
    messages = session.execute(
        select(
            JobRecord.tenant,
            func.count().label("number"),
            (now() - func.min(JobRecord.woken_at)).label("seconds"),
        )
        .where(JobRecord.send_after.is_not(None))
        .group_by(JobRecord.tenant)
    )
    to_be_sent = [
        row
        for row in messages
        if most_running is None or used[row.tenant] + row.number <= most_running
    ]
    queued, held, split, expired, oldest = states
    return Queue(
        queued=queued,
        running=held,
        split=split,
        oldest_queued_seconds=max(oldest or 0.0, 0.0),
        expired_leases=expired,
        outbox=sum(row.number for row in to_be_sent),
        oldest_outbox_seconds=max([0.0, *(row.seconds for row in to_be_sent)]),
    )

"""Wake-up messages: written with the job's change, sent to the broker off the request path.

A message holds a job's id and nothing else. It may be sent twice or for a job that has ended:
the claim decides, the message only hints.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, delete, insert, select, update
from sqlalchemy.orm import Session

from service.db.clock import now
from service.jobs import tenant_slots
from service.jobs.records import JobRecord, OutboxRecord

# How long the messages of a dispatcher that was killed before it had sent them wait for another.
RESERVATION_SECONDS = 10.0
# Ids in one statement: SQLite takes 32,766 values, and a job may be split into more parts.
_IDS_AT_ONCE = 10_000


class WakeUp(NamedTuple):
    """A message that waits to be sent."""

    id: int
    job_id: str


def announce(session: Session, job_ids: Sequence[str]) -> None:
    """Write one message a job that was made in the session's transaction."""
    if job_ids:
        session.execute(insert(OutboxRecord), [{"job_id": job_id} for job_id in job_ids])


def put_back(session: Session, job_id: str) -> None:
    """Write the message of a job that was refused for want of a place; it is not sent at once."""
    in_a_moment = now() + tenant_slots.REFUSED_SECONDS
    session.execute(insert(OutboxRecord).values(job_id=job_id, created_at=in_a_moment))


def wake(session: Session, job_ids: Sequence[str]) -> None:
    """Write one message a job that waits again, in the session's transaction."""
    announce(session, job_ids)
    for first in range(0, len(job_ids), _IDS_AT_ONCE):
        session.execute(
            update(JobRecord)
            .where(JobRecord.id.in_(job_ids[first : first + _IDS_AT_ONCE]))
            .values(woken_at=now())
            .execution_options(synchronize_session=False)
        )


def pending(session: Session, limit: int, most_running: int | None = None) -> list[WakeUp]:
    """Return the oldest messages that no dispatcher is about to send, at most `limit`.

    Of each tenant's waiting jobs no more than have a place, those first that some worker had
    begun: see `tenant_slots`. On PostgreSQL the messages stay locked until the transaction ends, and
    another dispatcher passes over them.
    """
    used = Counter[str]()
    order: list[ColumnElement[Any]] = [OutboxRecord.id.expression]
    if most_running is not None:
        tenant_slots.lock_all(session)
        used = tenant_slots.taken(session)
        # One that was handed over has waited before, and has a checkpoint to go on from.
        order.insert(0, JobRecord.started_at.is_(None))
    rows = session.execute(
        select(
            OutboxRecord.id,
            OutboxRecord.job_id,
            JobRecord.tenant,
            tenant_slots.needs_one().label("needs_place"),
        )
        .join(JobRecord, JobRecord.id == OutboxRecord.job_id)
        .where(tenant_slots.is_unsent(), ~tenant_slots.rests(), tenant_slots.need_not_wait(used, most_running))
        .order_by(*order)
        .limit(limit)
        .with_for_update(of=OutboxRecord, skip_locked=True)
    )
    messages: list[WakeUp] = []
    for row in rows:
        if most_running is not None and row.needs_place:
            if used[row.tenant] >= most_running:
                continue
            used[row.tenant] += 1
        messages.append(WakeUp(id=row.id, job_id=row.job_id))
    return messages


def reserve(session: Session, limit: int, most_running: int | None = None) -> list[WakeUp]:
    """Take the oldest messages for one dispatcher, at most `limit`; others pass over them.

    It sends them when this transaction has ended: no lock is held while a message travels.
    """
    messages = pending(session, limit, most_running)
    _set_reservation(session, messages, now() + RESERVATION_SECONDS)
    return messages


def give_back(session: Session, messages: Sequence[WakeUp]) -> None:
    """Leave reserved messages, which the broker has not taken, to any dispatcher."""
    _set_reservation(session, messages, None)


def _set_reservation(
    session: Session, messages: Sequence[WakeUp], until: ColumnElement[float] | None
) -> None:
    if not messages:
        return
    session.execute(
        update(OutboxRecord)
        .where(OutboxRecord.id.in_([message.id for message in messages]))
        .values(reserved_until=until)
        .execution_options(synchronize_session=False)
    )


def sent(session: Session, ids: Sequence[int]) -> None:
    """Delete messages that the broker has taken."""
    session.execute(delete(OutboxRecord).where(OutboxRecord.id.in_(ids)))

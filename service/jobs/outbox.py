"""The outbox is the job's own row: whether its wake-up message is yet to be sent to the broker.

A message holds a job's id and nothing else. It may be sent twice or for a job that has ended:
the claim decides, the message only hints. `JobRecord.send_after` is set while a message is to be
sent, which is only where a job waits; the claim and a cancellation clear it.
"""

from collections import Counter
from collections.abc import Collection
from typing import Any, NamedTuple, TypeVarTuple

from sqlalchemy import ColumnElement, Select, and_, func, or_, select, update
from sqlalchemy.orm import Session

from service.db.clock import now
from service.jobs import tenant_slots
from service.jobs.records import JobRecord

Columns = TypeVarTuple("Columns")
# How long the messages of a dispatcher that was killed before it had sent them wait for another.
RESERVATION_SECONDS = 10.0
# How long the message of a job that was refused for want of a slot is delayed.
REFUSED_SECONDS = 5.0


class Batch(NamedTuple):
    """Jobs whose messages one dispatcher is about to send."""

    job_ids: list[str]
    # `send_after` of them all meanwhile: whose is another, has been claimed or woken anew.
    reserved_until: float


def wake(session: Session, job_ids: Collection[str]) -> None:
    """Have a message sent for each of these jobs, which wait again."""
    _update(
        session,
        JobRecord.id.in_(job_ids),
        {"woken_at": now(), "send_after": now(), "sent_at": None},
    )


def delay(session: Session, which: ColumnElement[bool]) -> None:
    """Have a message sent again, some seconds later, for waiting jobs that a worker has refused.

    One that is to be sent anyhow stays as it is. One that a dispatcher has reserved may be the very
    one that led here, which it will hold to be sent.
    """
    _update(session, which & ~is_due(), {"send_after": now() + REFUSED_SECONDS, "sent_at": now()})


def is_due() -> ColumnElement[bool]:
    """Return the condition that a job's message is to be sent now.

    One that is further ahead of its time than any is put was so before the clock was set back.
    """
    return and_(
        JobRecord.send_after.is_not(None),
        or_(JobRecord.send_after <= now(), JobRecord.send_after > now() + RESERVATION_SECONDS),
    )


def num_delayed(session: Session) -> int:
    """Return how many jobs workers have refused a moment ago, for want of a slot."""
    is_ahead = and_(
        JobRecord.send_after.is_not(None),
        JobRecord.send_after > now(),
        JobRecord.send_after <= now() + REFUSED_SECONDS,
    )
    # What a dispatcher has reserved was not sent.
    delayed = select(func.count(JobRecord.id)).where(is_ahead, JobRecord.sent_at.is_not(None))
    return session.execute(delayed).scalar_one()


def reserve(session: Session, limit: int, most_running: int | None = None) -> Batch:
    """Take the oldest messages that are due for one dispatcher, at most `limit`.

    Others pass over them for a while: it sends them when this transaction has ended, as no lock is
    held while a message travels. Of each tenant's jobs no more are taken than have a free slot,
    those first that some worker had begun: see `tenant_slots`.
    """
    order: list[ColumnElement[Any]] = [JobRecord.woken_at.expression, JobRecord.id.expression]
    due = select(JobRecord.id, JobRecord.tenant).where(is_due())
    used = Counter[str]()
    if most_running is not None:
        tenant_slots.lock_all(session)
        used = tenant_slots.used(session)
        full = [tenant for tenant, number in used.items() if number >= most_running]
        due = due.where(JobRecord.tenant.not_in(full))
        # One that was handed over has waited before, and has a checkpoint to go on from.
        order.insert(0, JobRecord.started_at.is_(None))
    rows = session.execute(_lock_free(due.order_by(*order).limit(limit))).all()
    job_ids: list[str] = []
    for row in rows:
        if most_running is None or used[row.tenant] < most_running:
            used[row.tenant] += 1
            job_ids.append(row.id)
    if not job_ids:
        return Batch([], 0.0)
    until = session.execute(select(now() + RESERVATION_SECONDS)).scalar_one()
    _update(session, JobRecord.id.in_(job_ids), {"send_after": until, "sent_at": None})
    return Batch(job_ids, until)


def settle(session: Session, batch: Batch, num_sent: int) -> None:
    """Note that the broker has taken the first messages of a batch; leave the rest to anybody.

    Jobs that were claimed or woken anew meanwhile stay as they are, and so do those that somebody
    has locked at this moment: if they still wait once their reservation is over, they are sent
    again.
    """
    is_reserved = JobRecord.id.in_(batch.job_ids) & (JobRecord.send_after == batch.reserved_until)
    free = set(session.scalars(_lock_free(select(JobRecord.id).where(is_reserved))))
    sent, unsent = batch.job_ids[:num_sent], batch.job_ids[num_sent:]
    _update(session, JobRecord.id.in_(free & {*sent}), {"send_after": None, "sent_at": now()})
    _update(session, JobRecord.id.in_(free & {*unsent}), {"send_after": now()})


def _lock_free(query: Select[*Columns]) -> Select[*Columns]:
    """Return the query for those jobs that nobody has locked, and lock these.

    On SQLite a transaction that writes is alone. Rows that refer to the jobs may be written
    meanwhile.
    """
    return query.with_for_update(key_share=True, skip_locked=True)


def _update(session: Session, which: ColumnElement[bool], values: dict[str, Any]) -> None:
    statement = update(JobRecord).where(which).values(values)
    session.execute(statement.execution_options(synchronize_session=False))

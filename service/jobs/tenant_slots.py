"""Places: how many jobs of one tenant workers may hold at a time, where an operator limits that.

Messages for which their tenant has no place stay in the outbox, so that the queue holds no more
of a tenant's jobs than may run, and others' jobs pass by those that wait. The claim is what keeps
the limit: should more messages be on their way than there are places, it refuses the job, whose
message then comes back to the outbox, to be sent some seconds later: a dispatcher that knows no
limit, or a higher one, sends it round and round, and is not to keep all workers busy with it. Parts
of a job count; a job that rests on its parts does not.
"""

from collections import Counter
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, exists, func, literal, or_, select, true
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session, aliased
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement

from service.db.clock import now
from service.jobs.records import JobRecord, JobState, OutboxRecord

_UNFINISHED = (JobState.QUEUED, JobState.RUNNING)
# How long the message of a job that was refused for want of a place rests.
REFUSED_SECONDS = 5.0
# What no tenant can be called.
_ALL_TENANTS = "*"


class _LockUntilCommit(FunctionElement[Any]):
    """A lock on a text, which one transaction holds at a time."""

    type = BigInteger()
    inherit_cache = True


@compiles(_LockUntilCommit, "postgresql")
def _postgresql_lock(element: _LockUntilCommit, compiler: SQLCompiler, **kwargs: Any) -> str:
    return f"pg_advisory_xact_lock(hashtextextended({compiler.process(element.clauses)}, 0))"


@compiles(_LockUntilCommit, "sqlite")
def _sqlite_lock(element: _LockUntilCommit, compiler: SQLCompiler, **kwargs: Any) -> str:
    return "0"  # a transaction that writes is alone


def lock(session: Session, job_id: str) -> None:
    """Let claims of the jobs of this one's tenant wait until the session's transaction ends.

    Two that count at the same moment would else both take the last place.
    """
    tenant = select(_LockUntilCommit(JobRecord.tenant)).where(JobRecord.id == job_id)
    session.execute(tenant).all()


def lock_all(session: Session) -> None:
    """Let other dispatchers wait with their count until the session's transaction ends.

    Two that count at the same moment would else both send a message for the last place.
    """
    session.execute(select(_LockUntilCommit(literal(_ALL_TENANTS)))).all()


def is_one_free(most: int) -> ColumnElement[bool]:
    """Return the condition that workers hold fewer than `most` other jobs of a job's tenant."""
    other = aliased(JobRecord)
    held = (
        select(func.count())
        .select_from(other)
        .where(
            other.tenant == JobRecord.tenant,
            other.state == JobState.RUNNING,
            other.lease_token.is_not(None),
            other.id != JobRecord.id,
        )
    )
    return held.scalar_subquery() < most


def is_unsent() -> ColumnElement[bool]:
    """Return the condition that no dispatcher is about to send a message."""
    reserved_until = OutboxRecord.reserved_until
    return or_(reserved_until.is_(None), reserved_until < now())


def rests() -> ColumnElement[bool]:
    """Return the condition that a message is that of a job that was refused a moment ago.

    It was written ahead of its time. If it is by more than a moment, the clock was set back.
    """
    written_at = OutboxRecord.created_at
    return (written_at > now()) & (written_at <= now() + REFUSED_SECONDS)


def num_resting(session: Session) -> int:
    """Return how many jobs were refused a moment ago, for want of a place."""
    resting = select(func.count()).select_from(OutboxRecord).where(rests())
    return session.execute(resting).scalar_one()


def has_unsent_message() -> ColumnElement[bool]:
    """Return the condition that a job has a message that no dispatcher is about to send."""
    return exists().where(OutboxRecord.job_id == JobRecord.id, is_unsent())


def taken(session: Session) -> Counter[str]:
    """Return how many places each tenant uses: jobs held, and waiting ones with a sent message."""
    is_sent = (JobRecord.state == JobState.QUEUED) & ~has_unsent_message()
    is_held = (JobRecord.state == JobState.RUNNING) & JobRecord.lease_token.is_not(None)
    rows = session.execute(
        select(JobRecord.tenant, func.count().label("number"))
        .where(JobRecord.state.in_(_UNFINISHED), is_sent | is_held)
        .group_by(JobRecord.tenant)
    )
    return Counter({row.tenant: row.number for row in rows})


def needs_one() -> ColumnElement[bool]:
    """Return the condition that a job has not ended and is not in a worker's hands."""
    return JobRecord.state.in_(_UNFINISHED) & JobRecord.lease_token.is_(None)


def need_not_wait(used: Counter[str], most: int | None) -> ColumnElement[bool]:
    """Return the condition that a job's tenant has a free place, or that the job needs none."""
    if most is None:
        return true()
    full = [tenant for tenant, number in used.items() if number >= most]
    return JobRecord.tenant.not_in(full) | ~needs_one()

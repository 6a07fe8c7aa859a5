"""Slots: how many jobs of one tenant workers may hold at a time, where an operator limits that.

Messages for which their tenant has no slot are not sent, so that the queue holds no more of a
tenant's jobs than may run, and others' jobs pass by those that wait. The claim is what keeps the
limit: should more messages be on their way than there are slots, it refuses the job, whose message
is then sent again some seconds later: a dispatcher that knows no limit, or a higher one, sends it
round and round, and is not to keep all workers busy with it. Parts of a job count; a job that waits
for its parts does not.
"""

from collections import Counter
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, func, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session, aliased
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement

from service.db.clock import now
from service.jobs.records import UNFINISHED, JobRecord, JobState

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

    Two that count at the same moment would else both take the last slot.
    """
    tenant = select(_LockUntilCommit(JobRecord.tenant)).where(JobRecord.id == job_id)
    session.execute(tenant).all()


def lock_all(session: Session) -> None:
    """Let other dispatchers wait with their count until the session's transaction ends.

    Two that count at the same moment would else both send a message for the last slot.
    """
    session.execute(select(_LockUntilCommit(literal(_ALL_TENANTS)))).all()


def is_free(most: int) -> ColumnElement[bool]:
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


def used(session: Session) -> Counter[str]:
    """Return how many slots each tenant uses: jobs held, and those whose message is on its way."""
    is_sent = JobRecord.send_after.is_(None)
    is_reserved = (JobRecord.send_after > now()) & JobRecord.sent_at.is_(None)
    is_on_its_way = (JobRecord.state == JobState.QUEUED) & (is_sent | is_reserved)
    is_held = (JobRecord.state == JobState.RUNNING) & JobRecord.lease_token.is_not(None)
    rows = session.execute(
        select(JobRecord.tenant, func.count().label("number"))
        .where(JobRecord.state.in_(UNFINISHED), is_on_its_way | is_held)
        .group_by(JobRecord.tenant)
    )
    return Counter({row.tenant: row.number for row in rows})

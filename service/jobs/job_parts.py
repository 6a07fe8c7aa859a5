"""Jobs that are split into parts, each a job of its own that any worker may take.

The parent is `running` without a lease while its parts are at work. Whoever ends a part, in the
same transaction, notes it in the parent's progress and, after the last, wakes the parent, whose
next claim is to put the parts together. A part that fails or is cancelled has ended too: what
became of it is for the parent to say.

Transactions that lock several jobs do so in one order, or PostgreSQL would find them waiting for
each other: a parent before its parts, and otherwise by id. See `lock` and `lock_parts`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, exists, func, select, update
from sqlalchemy.orm import Session, aliased

from service.db.clock import now
from service.db.identifiers import new_id
from service.jobs import job_counts, outbox
from service.jobs.records import UNFINISHED, JobRecord, JobState
from service.jobs.specs import JobSpec

STAGE = "parts"
# Share of a parent's work that its parts are; splitting and putting together are the rest.
PARTS_SHARE = 0.95


@dataclass(frozen=True)
class PartCounts:
    """How many parts a job has, by their state."""

    total: int
    by_state: dict[JobState, int]

    @property
    def num_ended(self) -> int:
        """Parts in a final state."""
        return sum(count for state, count in self.by_state.items() if state.is_terminal)


def waits_for_parts() -> ColumnElement[bool]:
    """Return the condition that a job runs, but by its parts: no worker holds it."""
    return (
        (JobRecord.state == JobState.RUNNING) & JobRecord.is_split & JobRecord.lease_token.is_(None)
    )


def is_complete() -> ColumnElement[bool]:
    """Return the condition that a job waits for nothing but to have its parts put together."""
    part = aliased(JobRecord)
    has_unfinished = exists().where(part.parent_id == JobRecord.id, part.state.in_(UNFINISHED))
    return waits_for_parts() & ~has_unfinished


def waits() -> ColumnElement[bool]:
    """Return the condition that a job waits for a worker: to be begun, or to be put together."""
    return (JobRecord.state == JobState.QUEUED) | is_complete()


def add(session: Session, parent_id: str, specs: Sequence[JobSpec]) -> None:
    """Store a queued job for every part of a job; without any the parent is woken."""
    parent = session.get_one(JobRecord, parent_id)
    # Microseconds apart, so that they are sent in their order: a statement may know one time.
    made_at = session.execute(select(now())).scalar_one()
    session.add_all(
        JobRecord(
            id=new_id("job"),
            kind=spec.kind,
            state=JobState.QUEUED,
            spec=spec.model_dump(mode="json"),
            parent_id=parent_id,
            tag=parent.tag,
            request_id=parent.request_id,
            max_attempts=parent.max_attempts,
            woken_at=made_at + 1e-6 * position,
        )
        for position, spec in enumerate(specs)
    )
    session.flush()
    job_counts.submitted(session, [spec.kind for spec in specs])
    if specs:
        _note_progress(session, parent_id)
    else:
        outbox.wake(session, [parent_id])


def lock(session: Session, job_ids: Collection[str]) -> list[str]:
    """Lock jobs, and before them the parents of those that are parts; return those there are.

    Call it before any other lock of the transaction on a job. Of two parts that end at once the
    second then sees both.
    """
    return _lock(session, job_ids, skip_locked=False)


def lock_free(session: Session, job_ids: Collection[str]) -> list[str]:
    """Lock those jobs that nobody else has locked, as `lock` does; return them.

    For what can be done a moment later as well: a process that hangs while it holds a job keeps
    nobody waiting who does the work of all.
    """
    return _lock(session, job_ids, skip_locked=True)


def _lock(session: Session, job_ids: Collection[str], *, skip_locked: bool) -> list[str]:
    parents = session.execute(
        select(JobRecord.id, JobRecord.parent_id).where(JobRecord.id.in_(job_ids))
    ).all()
    roots = {parent_id or job_id for job_id, parent_id in parents}
    locked = _lock_in_order(session, JobRecord.id.in_(roots), skip_locked=skip_locked)
    parts = [job_id for job_id, parent_id in parents if parent_id in set(locked)]
    locked += _lock_in_order(session, JobRecord.id.in_(parts), skip_locked=skip_locked)
    return [job_id for job_id in locked if job_id in set(job_ids)]


def lock_parts(session: Session, parent_id: str) -> list[str]:
    """Lock all parts of a job that is locked already; return their ids in order."""
    return _lock_in_order(session, JobRecord.parent_id == parent_id, skip_locked=False)


def _lock_in_order(session: Session, which: ColumnElement[bool], *, skip_locked: bool) -> list[str]:
    # No key is changed: rows that refer to these may be written meanwhile.
    query = select(JobRecord.id).where(which).order_by(JobRecord.id)
    return list(session.scalars(query.with_for_update(key_share=True, skip_locked=skip_locked)))


def part_ended(session: Session, job_id: str) -> None:
    """Tell a job's parent, if it has one, that the job has ended; both are locked."""
    parent_id = session.scalar(select(JobRecord.parent_id).where(JobRecord.id == job_id))
    if parent_id is None:
        return
    _note_progress(session, parent_id)
    complete = session.scalar(select(JobRecord.id).where(JobRecord.id == parent_id, is_complete()))
    if complete is not None:
        outbox.wake(session, [parent_id])


def part_counts(session: Session, parent_ids: Sequence[str]) -> dict[str, PartCounts]:
    """Return how many parts each of these jobs has; jobs without parts are left out."""
    if not parent_ids:
        return {}
    rows = session.execute(
        select(JobRecord.parent_id, JobRecord.state, func.count())
        .where(JobRecord.parent_id.in_(parent_ids))
        .group_by(JobRecord.parent_id, JobRecord.state)
    ).all()
    found: dict[str, dict[JobState, int]] = {}
    for parent_id, state, count in rows:
        assert parent_id is not None  # it is one of those asked for
        found.setdefault(parent_id, {})[JobState(state)] = count
    return {job_id: PartCounts(sum(by.values()), by) for job_id, by in found.items()}


def parts_of(session: Session, parent_id: str) -> list[JobRecord]:
    """Return a job's parts in the order in which they were made."""
    query = select(JobRecord).where(JobRecord.parent_id == parent_id)
    return list(session.scalars(query.order_by(JobRecord.spec["part"].as_integer())))


def _note_progress(session: Session, parent_id: str) -> None:
    counts = part_counts(session, [parent_id])[parent_id]
    progress = {
        "stage": STAGE,
        "fraction": PARTS_SHARE * counts.num_ended / counts.total,
        "iteration": counts.num_ended,
        "objective": None,
    }
    session.execute(
        update(JobRecord)
        .where(JobRecord.id == parent_id)
        .values(progress=progress, progress_at=now())
        .execution_options(synchronize_session=False)
    )

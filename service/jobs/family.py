"""Jobs that are split into parts, each a job of its own that any worker may take.

The parent is `running` without a lease while its parts are at work. Whoever ends a part, in the
same transaction, notes it in the parent's progress and, after the last, wakes the parent, whose
next claim is to put the parts together. A part that fails or is cancelled has ended too: what
became of it is for the parent to say.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, exists, func, insert, select, update
from sqlalchemy.orm import Session, aliased

from service.clock import now
from service.identifiers import new_id
from service.jobs import outbox
from service.jobs.records import JobRecord, JobState
from service.jobs.specs import JobSpec
from service.metrics import job_counts

STAGE = "parts"
# Share of a parent's work that its parts are; splitting and putting together are the rest.
_PARTS_SHARE = 0.95
_UNFINISHED = (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True)
class PartCounts:
    """How many parts a job has, by their state."""

    total: int
    by_state: dict[JobState, int]

    @property
    def num_ended(self) -> int:
        """Parts in a final state."""
        return sum(count for state, count in self.by_state.items() if state.is_terminal)


def is_complete() -> ColumnElement[bool]:
    """Return the condition that a job waits for nothing but to have its parts put together."""
    part = aliased(JobRecord)
    has_unfinished = exists().where(part.parent_id == JobRecord.id, part.state.in_(_UNFINISHED))
    return (
        (JobRecord.state == JobState.RUNNING)
        & JobRecord.is_split
        & JobRecord.lease_token.is_(None)
        & ~has_unfinished
    )


def waits() -> ColumnElement[bool]:
    """Return the condition that a job waits for a worker: to be begun, or to be put together."""
    return (JobRecord.state == JobState.QUEUED) | is_complete()


def add_parts(
    session: Session,
    parent_id: str,
    parts: Sequence[JobSpec],
    max_attempts: int,
    tag: str | None,
    request_id: str | None,
) -> None:
    """Store a queued job and its message for every part; without any the parent is woken."""
    rows = [
        {
            "id": new_id("job"),
            "kind": part.kind,
            "state": JobState.QUEUED,
            "spec": part.model_dump(mode="json"),
            "parent_id": parent_id,
            "tag": tag,
            "request_id": request_id,
            "max_attempts": max_attempts,
        }
        for part in parts
    ]
    if rows:
        session.execute(insert(JobRecord), rows)
        job_counts.submitted(session, [part.kind for part in parts])
        outbox.wake(session, [str(row["id"]) for row in rows])
        _note_progress(session, parent_id)
    else:
        outbox.wake(session, [parent_id])


def part_ended(session: Session, job_id: str) -> None:
    """Tell a job's parent, if it has one, that the job has ended."""
    parent_id = session.scalar(select(JobRecord.parent_id).where(JobRecord.id == job_id))
    if parent_id is None:
        return
    # Locks the parent's row first, so that of two parts that end at once the second sees both.
    session.execute(
        update(JobRecord)
        .where(JobRecord.id == parent_id)
        .values(progress_at=now())
        .execution_options(synchronize_session=False)
    )
    _note_progress(session, parent_id)
    complete = session.scalar(select(JobRecord.id).where(JobRecord.id == parent_id, is_complete()))
    if complete is not None:
        outbox.wake(session, [parent_id])


def part_counts(session: Session, parent_ids: Sequence[str]) -> dict[str, PartCounts]:
    """Return how many parts each of these jobs has; jobs without parts are left out."""
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
    parts = session.scalars(select(JobRecord).where(JobRecord.parent_id == parent_id)).all()
    return sorted(parts, key=lambda part: int(part.spec["part"]))


def _note_progress(session: Session, parent_id: str) -> None:
    counts = part_counts(session, [parent_id])[parent_id]
    progress = {
        "stage": STAGE,
        "fraction": _PARTS_SHARE * counts.num_ended / counts.total,
        "iteration": counts.num_ended,
        "objective": None,
    }
    session.execute(
        update(JobRecord)
        .where(JobRecord.id == parent_id)
        .values(progress=progress, progress_at=now())
        .execution_options(synchronize_session=False)
    )

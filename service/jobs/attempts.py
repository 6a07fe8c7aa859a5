"""How attempts at jobs end: the one place where a lease is cleared.

Whoever calls these has locked the jobs: see `job_parts.lock`.
"""

from typing import Any

from sqlalchemy import ColumnElement, case, literal, null, update
from sqlalchemy.orm import Session

from service.db.clock import now
from service.jobs import job_counts, job_parts, outbox
from service.jobs.records import FINAL, JobRecord, JobState


def unless_cancelled(state: JobState | ColumnElement[str]) -> ColumnElement[str]:
    """Return the state of a job whose attempt ends so: another if it was to be cancelled."""
    return case((_is_to_be_cancelled(), JobState.CANCELLED), else_=state)


def end(
    session: Session,
    which: ColumnElement[bool],
    state: JobState | ColumnElement[str],
    **values: Any,
) -> dict[str, JobState]:
    """Take the lease off jobs, with all that follows for those that have ended.

    Returns the jobs' states by their ids.
    """
    column = literal(state) if isinstance(state, JobState) else state
    rows = session.execute(
        update(JobRecord)
        .where(which)
        .values(
            lease_token=None,
            lease_expires_at=None,
            state=column,
            finished_at=case((column.in_(FINAL), now()), else_=None),
            **values,
        )
        .returning(JobRecord.id, JobRecord.state)
        .execution_options(synchronize_session=False)
    ).all()
    states = {row.id: JobState(row.state) for row in rows}
    ended = [job_id for job_id, reached in states.items() if reached.is_terminal]
    job_counts.finished(session, ended)
    for job_id in ended:
        job_parts.part_ended(session, job_id)
    return states


def requeue(session: Session, which: ColumnElement[bool], **values: Any) -> dict[str, JobState]:
    """Leave jobs to other workers, as if this attempt had not begun, or end them cancelled.

    Returns the jobs' states by their ids.
    """
    # One that was split stays what it is: its parts have ended, and any worker may take it.
    waiting = case((JobRecord.is_split, JobState.RUNNING), else_=JobState.QUEUED)
    progress = {
        "progress": case((_is_to_be_cancelled(), JobRecord.progress), else_=null()),
        "progress_at": case((_is_to_be_cancelled(), JobRecord.progress_at), else_=None),
    }
    states = end(session, which, unless_cancelled(waiting), **progress, **values)
    outbox.wake(session, [job_id for job_id, state in states.items() if not state.is_terminal])
    return states


def _is_to_be_cancelled() -> ColumnElement[bool]:
    return JobRecord.cancel_requested_at.is_not(None)

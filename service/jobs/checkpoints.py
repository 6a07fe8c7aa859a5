"""What a long fit has done so far, kept for the attempt that follows an interruption.

The bytes are the engine's; nothing here looks into them. They are saved by whoever holds the
lease, in a transaction that renews it, and are of no use once the job has ended.
"""

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from service.db.clock import now
from service.jobs.records import FINAL, CheckpointRecord, JobRecord


def save(session: Session, job_id: str, version: str, data: bytes) -> None:
    """Keep `data`, written by this version of the code, in place of what was kept of the job."""
    session.merge(CheckpointRecord(job_id=job_id, version=version, data=data, saved_at=now()))


def load(session: Session, job_id: str, version: str) -> bytes | None:
    """Return what was kept of the job; None if that is nothing, or another version's."""
    return session.scalar(
        select(CheckpointRecord.data).where(
            CheckpointRecord.job_id == job_id, CheckpointRecord.version == version
        )
    )


def remove_ended(session: Session) -> None:
    """Delete what was kept of jobs that have ended."""
    ended = select(JobRecord.id).where(JobRecord.state.in_(FINAL))
    session.execute(
        delete(CheckpointRecord)
        .where(CheckpointRecord.job_id.in_(ended))
        .execution_options(synchronize_session=False)
    )

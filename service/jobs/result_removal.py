"""SQL that removes what jobs have left: here, so that who only removes need not load tables."""

from sqlalchemy import delete, exists, select
from sqlalchemy.orm import Session, aliased

from service.db.blobs import BlobRecord
from service.db.clock import now
from service.jobs.records import UNFINISHED, JobRecord
from service.jobs.result_records import ArtefactRecord, EdgeRecord, ResultRecord

# Removed in half a second. SQLite has one writer, whom all others wait for.
MOST_AT_ONCE = 100


def remove_older_than(session: Session, seconds: float, after: str = "") -> list[str]:
    """Delete the first results that were stored longer ago than that; return their jobs' ids.

    They come in the order of these ids, at most `MOST_AT_ONCE` of those behind `after`. A part's is
    kept while the job that will put the parts together has not ended.
    """
    part, parent = aliased(JobRecord), aliased(JobRecord)
    is_still_needed = exists().where(
        part.id == ResultRecord.job_id,
        parent.id == part.parent_id,
        parent.state.in_(UNFINISHED),
    )
    job_ids = session.scalars(
        select(ResultRecord.job_id)
        .where(
            ResultRecord.job_id > after,
            ResultRecord.created_at < now() - seconds,
            ~is_still_needed,
        )
        # As `lifecycle.remove` does, so that neither waits for the other.
        .order_by(ResultRecord.job_id)
        .limit(MOST_AT_ONCE)
    ).all()
    for job_id in job_ids:
        remove(session, job_id)
    return list(job_ids)


def remove(session: Session, job_id: str) -> None:
    """Delete everything that the job has left, bytes included."""
    blob_ids = session.scalars(
        select(ArtefactRecord.blob_id).where(ArtefactRecord.job_id == job_id)
    ).all()
    for record in (ArtefactRecord, EdgeRecord, ResultRecord):
        session.execute(delete(record).where(record.job_id == job_id))
    session.execute(delete(BlobRecord).where(BlobRecord.id.in_(blob_ids)))

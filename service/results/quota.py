"""How much each tenant has stored, and how much it may.

Counted are the bytes of data sets, as they came and as they were read, and the files of results;
not rows, such as those of edges, whose files are larger.
"""

from collections import Counter

from anyio.to_thread import run_sync
from fastapi import Request
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.datasets.records import DatasetRecord
from service.db.blobs import BlobRecord
from service.http.dependencies import DatabaseDep, RequireRoomDep
from service.http.problems import ProblemCode, ProblemError
from service.jobs.records import JobRecord
from service.jobs.result_records import ArtefactRecord


def stored_bytes(session: Session) -> Counter[str]:
    """Return how much each tenant that the session sees has stored."""
    size = func.sum(BlobRecord.size)
    of_results = (
        select(JobRecord.tenant, size)
        .join(ArtefactRecord, ArtefactRecord.job_id == JobRecord.id)
        .join(BlobRecord, BlobRecord.id == ArtefactRecord.blob_id)
        .group_by(JobRecord.tenant)
    )
    of_datasets = [
        select(DatasetRecord.tenant, size)
        .join(BlobRecord, BlobRecord.id == blob_id)
        .group_by(DatasetRecord.tenant)
        for blob_id in (
            DatasetRecord.original_blob_id,
            DatasetRecord.table_blob_id,
            DatasetRecord.cells_blob_id,
        )
    ]
    total: Counter[str] = Counter()
    for query in (of_results, *of_datasets):
        for tenant, num_bytes in session.execute(query):
            total[tenant] += int(num_bytes)
    return total


def require_room(most: int | None, session: Session, num_bytes: int) -> None:
    """Raise `ProblemError` if the session's tenant may not store so much besides what it has."""
    if most is None:
        return
    stored = stored_bytes(session).total()
    if stored + num_bytes > most:
        raise ProblemError(
            ProblemCode.QUOTA_REACHED,
            f"{stored} bytes are stored of the {most} that a tenant may store, set by "
            "VNCE_MAX_STORED_BYTES; delete data sets, or jobs with their results.",
        )


async def refuse_without_room(
    request: Request, database: DatabaseDep, require_room: RequireRoomDep
) -> None:
    """Answer 413 to what would store more for a tenant that has stored all that it may.

    For routers whose POST stores something. An upload is judged once more when it is stored; how
    much a job will leave is not known when it is submitted.
    """

    def judge() -> None:
        with database.snapshot() as session:
            require_room(session, 1)

    if request.method == "POST":
        await run_sync(judge)

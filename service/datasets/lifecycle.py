"""The rules of data sets: how one comes to be, what is shown of it, when it may go."""

from collections.abc import Callable
from typing import BinaryIO, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.datasets import repository
from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.reader_pool import Readers
from service.datasets.reader_protocol import ReadRequest
from service.datasets.reading import read_dataset
from service.datasets.repository import NewDataset, StoredDataset
from service.datasets.schemas import DatasetItem, DatasetPreview, DatasetRead
from service.datasets.stored_table import to_parquet
from service.datasets.uploads import Upload
from service.db.clock import as_datetime
from service.db.database import Database
from service.db.identifiers import new_id
from service.http.dependencies import RequireRoom
from service.http.problems import ProblemCode, ProblemError

# Uploads that one process reads at a time: each may take hundreds of megabytes for a moment.
_READERS = 2
_limiter: RunVar[CapacityLimiter] = RunVar("dataset_readers")
# One for the process, whatever apps it holds: what forks readers takes half a second to start.
_readers = Readers()

Outcome = TypeVar("Outcome")


async def in_reader_thread(work: Callable[[], Outcome]) -> Outcome:
    """Return what `work` returns; it runs off the event loop, few at a time."""
    try:
        limiter = _limiter.get()
    except LookupError:
        limiter = CapacityLimiter(_READERS)
        _limiter.set(limiter)
    return await to_thread.run_sync(work, limiter=limiter)


def create(
    database: Database,
    upload: Upload,
    name: str,
    request: ReadRequest,
    require_room: RequireRoom,
) -> StoredDataset:
    """Read an upload and store it; raises `ProblemError` and stores nothing if it cannot be read.

    So it does if the tenant would then have stored more than it may; of uploads to PostgreSQL that
    are stored at the same moment, all may be.

    Everything slow happens before the transaction: on SQLite it keeps other writers waiting.
    """
    with _readers.read(upload.file, request) as read:
        new = NewDataset(
            id=new_id("dataset"),
            name=name,
            format=read.reading.format,
            num_rows=read.reading.summary.n_rows,
            num_columns=read.reading.summary.n_columns,
            summary=read.reading.summary.model_dump(mode="json"),
            original=upload.file,
            table=read.table,
            cells=read.cells,
        )
        with database.transaction() as session:
            require_room(session, upload.size)
            return repository.add(session, new)


def prepare(file: BinaryIO, name: str, options: ReadOptions, limits: ReadLimits) -> NewDataset:
    """Return what a file of our own making holds as a data set to be stored."""
    read = read_dataset(file, options, limits)
    return NewDataset(
        id=new_id("dataset"),
        name=name,
        format=read.format,
        num_rows=read.summary.n_rows,
        num_columns=read.summary.n_columns,
        summary=read.summary.model_dump(mode="json"),
        original=file,
        table=to_parquet(read.table),
        cells=to_parquet(read.cells) if read.cells.num_rows else None,
    )


def preview(upload: Upload, request: ReadRequest) -> DatasetPreview:
    """Read an upload and say what it would become."""
    with _readers.read(upload.file, request) as read:
        return DatasetPreview(
            format=read.reading.format,
            sha256=upload.sha256,
            size=upload.size,
            summary=read.reading.summary,
            first_rows=read.reading.first_rows,
        )


def existing(session: Session, dataset_id: str) -> StoredDataset:
    """Return a data set; raises `ProblemError` if there is none of this identifier."""
    stored = repository.find(session, dataset_id)
    if stored is None:
        raise ProblemError(ProblemCode.NOT_FOUND, "No data set has this identifier.")
    return stored


def remove(session: Session, dataset_id: str) -> None:
    """Delete a data set; raises `ProblemError` while jobs refer to it."""
    stored = existing(session, dataset_id)
    try:
        repository.remove(session, stored.record)
    except IntegrityError as error:
        raise ProblemError(
            ProblemCode.DATASET_IN_USE,
            f"The data set stays while jobs refer to it: GET /v1/jobs?dataset_id={dataset_id} "
            "lists them; delete them first.",
        ) from error


def describe_item(stored: StoredDataset) -> DatasetItem:
    """Return what a list shows of a data set."""
    return DatasetItem.model_validate(_facts(stored))


def describe(stored: StoredDataset) -> DatasetRead:
    """Return what the API shows of a data set."""
    return DatasetRead.model_validate({**_facts(stored), "summary": stored.record.summary})


def _facts(stored: StoredDataset) -> dict[str, object]:
    record = stored.record
    return {
        "id": record.id,
        "name": record.name,
        "created_at": as_datetime(record.created_at),
        "format": record.format,
        "sha256": stored.original.sha256,
        "size": stored.original.size,
        "n_rows": record.num_rows,
        "n_columns": record.num_columns,
        "has_ground_truth": stored.has_ground_truth,
    }

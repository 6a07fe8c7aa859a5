"""SQL of data sets and their ground truth."""

from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

from sqlalchemy import Select, delete, or_, select
from sqlalchemy.orm import Session, defer

from service.datasets.readers.cells import CELL_SCHEMA
from service.datasets.reading import read_csv_texts
from service.datasets.records import DatasetRecord, GroundTruthRecord
from service.datasets.schemas import DatasetSummary
from service.datasets.stored_table import StoredTable, Texts, from_parquet
from service.datasets.vocabulary import DatasetFormat
from service.db import blobs
from service.db.blobs import BlobRecord
from service.db.identifiers import is_id
from service.http.pagination import Place


@dataclass(frozen=True)
class NewDataset:
    """A data set ready to be stored."""

    id: str
    name: str
    format: DatasetFormat
    num_rows: int
    num_columns: int
    # `schemas.DatasetSummary` as JSON.
    summary: dict[str, object]
    original: BinaryIO
    table: bytes | BinaryIO
    cells: bytes | BinaryIO | None


@dataclass(frozen=True)
class StoredDataset:
    """A data set's row together with what belongs to it."""

    record: DatasetRecord
    original: BlobRecord
    has_ground_truth: bool


def add(session: Session, new: NewDataset) -> StoredDataset:
    """Add a data set with its bytes to the session's transaction."""
    original = blobs.store(session, new.original)
    table = blobs.store(session, new.table)
    cells = None if new.cells is None else blobs.store(session, new.cells)
    record = DatasetRecord(
        id=new.id,
        name=new.name,
        format=new.format,
        num_rows=new.num_rows,
        num_columns=new.num_columns,
        summary=new.summary,
        original_blob_id=original.id,
        table_blob_id=table.id,
        cells_blob_id=None if cells is None else cells.id,
    )
    session.add(record)
    session.flush()
    session.refresh(record)  # created_at is the database's
    return StoredDataset(record, original, has_ground_truth=False)


def find(session: Session, dataset_id: str) -> StoredDataset | None:
    """Return a data set, or None if there is none of this identifier."""
    if not is_id(dataset_id):
        return None
    row = session.execute(_selected().where(DatasetRecord.id == dataset_id)).first()
    return row and StoredDataset(row[0], row[1], row[2] is not None)


def newest(session: Session, limit: int, after: Place | None) -> list[StoredDataset]:
    """Return up to `limit` data sets, newest first, that follow a place in the list."""
    query = (
        _selected()
        # A list shows no summaries, and these may be large.
        .options(defer(DatasetRecord.summary, raiseload=True))
        .order_by(DatasetRecord.created_at.desc(), DatasetRecord.id.desc())
    )
    if after is not None:
        created_at, dataset_id = after
        is_older = DatasetRecord.created_at < created_at
        is_next = (DatasetRecord.created_at == created_at) & (DatasetRecord.id < dataset_id)
        query = query.where(or_(is_older, is_next))
    rows = session.execute(query.limit(limit))
    return [StoredDataset(record, blob, truth is not None) for record, blob, truth in rows]


def remove(session: Session, record: DatasetRecord) -> None:
    """Delete a data set, its ground truth and all its bytes.

    Raises SQLAlchemy's `IntegrityError` while jobs refer to it.
    """
    blob_ids = [record.original_blob_id, record.table_blob_id]
    if record.cells_blob_id is not None:
        blob_ids.append(record.cells_blob_id)
    session.execute(delete(DatasetRecord).where(DatasetRecord.id == record.id))
    blobs.remove(session, blob_ids)


def load_table(session: Session, dataset_id: str) -> StoredTable:
    """Return what a job needs of a data set; raises `LookupError` if there is none."""
    stored = find(session, dataset_id)
    if stored is None:
        raise LookupError(f"no data set {dataset_id}")
    record = stored.record
    table = from_parquet(blobs.load(session, record.table_blob_id))
    if record.cells_blob_id is None:
        cells = CELL_SCHEMA.empty_table()
    else:
        cells = from_parquet(blobs.load(session, record.cells_blob_id))
    summary = DatasetSummary.model_validate(record.summary) if record.summary else None
    texts: Texts | None = None
    if record.format == DatasetFormat.CSV and summary is not None:
        texts = partial(read_csv_texts, blobs.load(session, record.original_blob_id), summary)
    truth = session.get(GroundTruthRecord, dataset_id)
    return StoredTable(
        dataset_id=dataset_id,
        name=record.name,
        sha256=stored.original.sha256,
        table=table,
        texts=texts,
        cells=cells,
        ground_truth=None if truth is None else truth.edges,
        summary=summary,
    )


def lock(session: Session, dataset_id: str) -> None:
    """Let nobody else attach a true graph or delete the data set until the transaction ends."""
    # Jobs that refer to it may be submitted meanwhile: no key is changed.
    query = select(DatasetRecord.id).where(DatasetRecord.id == dataset_id)
    session.execute(query.with_for_update(key_share=True)).all()


def put_ground_truth(
    session: Session, dataset_id: str, edges: list[list[str]]
) -> tuple[GroundTruthRecord, bool]:
    """Attach a true graph, in place of the one that was; return it and whether it is the first.

    The data set must be locked: two that come at once would else both be the first.
    """
    is_first = not remove_ground_truth(session, dataset_id)
    truth = GroundTruthRecord(dataset_id=dataset_id, edges=edges)
    session.add(truth)
    session.flush()
    # The edges are not read back: there may be very many.
    session.refresh(truth, ["created_at"])
    return truth, is_first


def remove_ground_truth(session: Session, dataset_id: str) -> bool:
    """Detach a data set's true graph; return whether there was one."""
    removed = session.execute(
        delete(GroundTruthRecord)
        .where(GroundTruthRecord.dataset_id == dataset_id)
        .returning(GroundTruthRecord.dataset_id)
    ).all()
    return bool(removed)


def _selected() -> Select[DatasetRecord, BlobRecord, str | None]:
    return (
        select(DatasetRecord, BlobRecord, GroundTruthRecord.dataset_id)
        .join(BlobRecord, BlobRecord.id == DatasetRecord.original_blob_id)
        .outerjoin(GroundTruthRecord, GroundTruthRecord.dataset_id == DatasetRecord.id)
    )

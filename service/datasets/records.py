"""Tables of data sets and their ground truth."""

from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from service.db.clock import now
from service.db.database import Record
from service.db.tenancy import OwnedRecord


class DatasetRecord(OwnedRecord, Record):
    """An upload: its bytes as they came, and the numbers read from them."""

    __tablename__ = "datasets"
    __table_args__ = (Index(None, "tenant", "created_at", "id"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str]
    created_at: Mapped[float] = mapped_column(default=now())
    format: Mapped[str] = mapped_column(String(16))
    num_rows: Mapped[int]
    num_columns: Mapped[int]
    # The columns, counts, dialect, changes and warnings: `schemas.DatasetSummary`.
    summary: Mapped[dict[str, Any]] = mapped_column(JSON)
    # The upload, byte for byte.
    original_blob_id: Mapped[str] = mapped_column(ForeignKey("blobs.id"))
    # What jobs read: Parquet, one double column a variable, null where no number is known.
    table_blob_id: Mapped[str] = mapped_column(ForeignKey("blobs.id"))
    # Cells such as `<0.5` and `ND`, as Parquet (`cells.CELL_SCHEMA`); null when there are none.
    cells_blob_id: Mapped[str | None] = mapped_column(ForeignKey("blobs.id"))


class GroundTruthRecord(Record):
    """The undirected graph that a data set is known, or accepted, to have."""

    __tablename__ = "ground_truths"

    dataset_id: Mapped[str] = mapped_column(
        ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True
    )
    created_at: Mapped[float] = mapped_column(default=now())
    # [[source name, target name], ...]: each pair once, in the data set's column order.
    edges: Mapped[list[list[str]]] = mapped_column(JSON)

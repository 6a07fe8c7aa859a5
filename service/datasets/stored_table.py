"""A data set's table as jobs read it, and the bytes it is kept in."""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from service.datasets.schemas import DatasetSummary, DatasetWarning

# Yields the cells of some variables row by row, as an upload has them.
Texts = Callable[[Sequence[str]], Iterator[list[str]]]


@dataclass(frozen=True)
class StoredTable:
    """Everything about a data set that a job needs."""

    dataset_id: str
    name: str
    # SHA-256 of the upload's bytes, in hexadecimal.
    sha256: str
    # One double column a variable; null where no number is known.
    table: pa.Table
    # What was read for the table's numbers; None unless the upload is CSV.
    texts: Texts | None
    # The censored and unknown cells among the nulls: `cells.CELL_SCHEMA`.
    cells: pa.Table
    # Pairs of names, each once; None where no true graph is attached.
    ground_truth: list[list[str]] | None
    # How the upload was read; None of a data set from before summaries.
    summary: DatasetSummary | None

    @property
    def warnings(self) -> list[DatasetWarning]:
        """What was odd about the upload."""
        return [] if self.summary is None else self.summary.warnings


def to_parquet(table: pa.Table) -> bytes:
    """Return the table as a Parquet file, every double to the last bit."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def from_parquet(content: bytes) -> pa.Table:
    """Return the table in a Parquet file made by `to_parquet`."""
    return pq.ParquetFile(pa.BufferReader(content)).read()

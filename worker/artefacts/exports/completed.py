"""Completed tables as JSON, NumPy, CSV and Parquet files.

In CSV an observed cell is what the upload has for it: a double may hold the digits of a large whole
number only in part, and would write 0.10 in another way.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from service.datasets.stored_table import Texts
from service.results.file_schemas import ImputationsRead, ImputedCell
from service.results.formats import MediaType
from service.results.outcome import Artefact
from worker.artefacts.exports.csv_text import csv_bytes
from worker.artefacts.exports.tables import json_artefact, npy_artefact, parquet_artefact

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class CompletedColumns:
    """What completed tables (n, d) of one upload share."""

    names: Sequence[str]
    observed: NDArray[np.bool_]
    """(n, d)"""
    texts: Texts | None
    """The upload's cells; None where it had no texts."""

    def lines(self, completed: FloatArray) -> Iterator[str]:
        """Yield the rows of a completed table as CSV without line ends."""
        rows = completed.tolist()
        if self.texts is None:
            for row in rows:
                yield ",".join(map(float.__repr__, row))
            return
        for row, known, texts in zip(
            rows, self.observed.tolist(), self.texts(self.names), strict=True
        ):
            cells = zip(row, known, texts, strict=True)
            yield ",".join(text if is_known else repr(x) for x, is_known, text in cells)


def imputation_artefacts(columns: CompletedColumns, completed: FloatArray) -> list[Artefact]:
    """Return the completed table (n, d) as `imputations`.json, .npy, .csv and .parquet.

    The JSON file also lists the cells that had no value.
    """
    names = list(columns.names)
    document = ImputationsRead(
        names=names,
        values=completed.tolist(),
        imputed=[
            ImputedCell(row=int(i) + 1, column=names[j], value=float(completed[i, j]))
            for i, j in np.argwhere(~columns.observed)
        ],
    )
    stem = "imputations"
    return [
        json_artefact(stem, document),
        npy_artefact(stem, completed),
        Artefact(f"{stem}.csv", MediaType.CSV, _csv(names, columns.lines(completed))),
        parquet_artefact(stem, names, completed),
    ]


def multiple_imputation_artefacts(
    columns: CompletedColumns, tables: Iterable[FloatArray]
) -> list[Artefact]:
    """Return completed tables (n, d) as imputations-m.csv and .parquet, one below the other.

    Before the variables stand the number of the table and that of the row, both from 1; their names
    get underscores where a variable has them.
    """
    header = [*_names_beside(("imputation", "row"), columns.names), *columns.names]
    integers = [pa.field(name, pa.int32(), nullable=False) for name in header[:2]]
    schema = pa.schema([*integers, *(pa.field(name, pa.float64()) for name in columns.names)])
    text, binary = BytesIO(), BytesIO()
    text.write(_csv(header, ()))
    with parquet.ParquetWriter(binary, schema) as writer:
        for number, table in enumerate(tables, start=1):
            rows = np.arange(1, len(table) + 1, dtype=np.int32)
            both = [np.full_like(rows, number), rows, *table.T]
            arrays = [pa.array(np.ascontiguousarray(column)) for column in both]
            writer.write_table(pa.table(arrays, schema=schema))
            for row, line in enumerate(columns.lines(table), start=1):
                text.write(f"{number},{row},{line}\n".encode())
    stem = "imputations-m"
    return [
        Artefact(f"{stem}.csv", MediaType.CSV, text.getvalue()),
        Artefact(f"{stem}.parquet", MediaType.PARQUET, binary.getvalue()),
    ]


def _csv(header: Sequence[str], lines: Iterable[str]) -> bytes:
    return csv_bytes(header, ()) + "".join(f"{line}\n" for line in lines).encode()


def _names_beside(wanted: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the wanted names, with as many underscores as tell them from all `names`."""
    return [name if name not in names else _names_beside([f"{name}_"], names)[0] for name in wanted]

"""Named matrices and tables as JSON, NumPy, CSV and Parquet files."""

import math
from collections.abc import Sequence
from io import BytesIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from service.results.base import ResultModel
from service.results.choices import AppliedTransforms
from service.results.file_schemas import MatrixRead, PartialCorrelationsRead
from service.results.formats import MediaType
from service.results.outcome import Artefact
from worker.artefacts.exports.csv_text import csv_bytes

FloatArray = NDArray[np.float64]


def matrix_artefacts(
    stem: str, names: Sequence[str], matrix: FloatArray, transform: AppliedTransforms
) -> list[Artefact]:
    """Return a square matrix (d, d) as `stem`.json, .npy, .csv and .parquet.

    The CSV file names its rows in the first column, whose own header is empty; in the Parquet file
    the rows are in the order of the columns.
    """
    document = MatrixRead(names=list(names), transform=transform, values=matrix.tolist())
    return [json_artefact(stem, document), *_matrix_files(stem, names, matrix)]


def partial_correlation_artefacts(
    names: Sequence[str], matrix: FloatArray, transform: AppliedTransforms, reason: str | None
) -> list[Artefact]:
    """Return the partial correlations (d, d) in the formats of `matrix_artefacts`.

    Those that are NaN are null in JSON and Parquet and empty in CSV; `reason` says why.
    """
    stem = "partial-correlations"
    document = PartialCorrelationsRead(
        names=list(names), transform=transform, values=_without_nan(matrix), reason=reason
    )
    return [json_artefact(stem, document), *_matrix_files(stem, names, matrix)]


def _matrix_files(stem: str, names: Sequence[str], matrix: FloatArray) -> list[Artefact]:
    rows = ([name, *values] for name, values in zip(names, _without_nan(matrix), strict=True))
    return [
        npy_artefact(stem, matrix),
        Artefact(f"{stem}.csv", MediaType.CSV, csv_bytes(["", *names], rows)),
        parquet_artefact(stem, names, matrix),
    ]


def _without_nan(matrix: FloatArray) -> list[list[float | None]]:
    return [[None if math.isnan(value) else value for value in row] for row in matrix.tolist()]


def json_artefact(stem: str, document: ResultModel) -> Artefact:
    """Return a document as `stem`.json."""
    return Artefact(f"{stem}.json", MediaType.JSON, document.model_dump_json().encode())


def npy_artefact(stem: str, table: FloatArray | NDArray[np.int64]) -> Artefact:
    """Return numbers (n, d) as `stem`.npy."""
    content = BytesIO()
    np.save(content, np.ascontiguousarray(table), allow_pickle=False)
    return Artefact(f"{stem}.npy", MediaType.NPY, content.getvalue())


def parquet_artefact(stem: str, names: Sequence[str], table: FloatArray) -> Artefact:
    """Return numbers (n, d) as `stem`.parquet, NaN as null."""
    columns = [pa.array(np.ascontiguousarray(column), from_pandas=True) for column in table.T]
    content = BytesIO()
    parquet.write_table(pa.table(columns, names=list(names)), content)
    return Artefact(f"{stem}.parquet", MediaType.PARQUET, content.getvalue())

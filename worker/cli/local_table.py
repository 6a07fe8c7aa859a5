"""A table in a file of this machine, read as the service reads an upload."""

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pydantic
import typer

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.readers.tokens import parse_number
from service.datasets.reading import ReadDataset, read_csv_texts, read_dataset
from service.datasets.stored_table import Texts
from service.datasets.vocabulary import DatasetFormat, Decimal
from service.http.problems import ProblemError
from service.results.schemas import DatasetIdentity
from worker.cli.client import JsonObject
from worker.cli.validation import validated


@dataclass(frozen=True)
class LocalTable:
    """What a job reads of a data set, and what was read."""

    dataset: ReadDataset
    texts: Texts | None
    identity: DatasetIdentity

    @classmethod
    def read(
        cls,
        path: Path,
        reading: JsonObject,
        request: JsonObject,
        limits: ReadLimits,
        by: str | None = None,
    ) -> Self:
        """Read the file of a `request`, whose column of clusters holds labels.

        So may the column `by` that tells groups. Raises `ProblemError` for what cannot be read or
        is above `limits`, and `BadParameter` where the table lacks either column.
        """
        flags = {"--cluster": request.get("cluster"), "--by": by}
        labels = [name for name in flags.values() if name is not None]
        if labels:
            reading = reading | {"labels": [*reading.get("labels", []), *labels]}
        options = validated(pydantic.TypeAdapter(ReadOptions), reading)
        content = path.read_bytes()
        try:
            dataset = read_dataset(content, options, limits)
        except ProblemError as problem:
            lacking = {item.column for item in problem.errors if item.parameter == "labels"}
            for flag, name in flags.items():
                if name in lacking:
                    told = "the table has no column of this name"
                    raise typer.BadParameter(told, param_hint=flag) from problem
            raise
        if by is not None:
            dataset = replace(dataset, table=_with_texts(dataset, by))
        is_csv = dataset.format is DatasetFormat.CSV
        return cls(
            dataset,
            partial(read_csv_texts, content, dataset.summary) if is_csv else None,
            DatasetIdentity(
                id=request["dataset_id"], name=path.name, sha256=hashlib.sha256(content).hexdigest()
            ),
        )

    def inputs(self) -> dict[str, Any]:
        """Return the fields that requests of all estimations have in common."""
        return {
            "table": self.dataset.table,
            "censored": self.dataset.cells,
            "table_warnings": self.dataset.summary.warnings,
            "dataset": self.identity,
        }


def _with_texts(dataset: ReadDataset, name: str) -> pa.Table:
    """Return the table with a column of labels as their texts, or as numbers if all of them are."""
    texts = dataset.labels.get(name)
    if not texts:
        return dataset.table
    dialect = dataset.summary.csv_dialect
    decimal = Decimal.POINT if dialect is None else dialect.decimal
    numbers = {number: parse_number(text, decimal) for number, text in texts.items()}
    labels = texts if None in numbers.values() else numbers
    cells = dataset.table[name].to_pylist()
    column = pa.array([None if cell is None else labels[int(cell)] for cell in cells])
    return dataset.table.set_column(dataset.table.column_names.index(name), name, column)

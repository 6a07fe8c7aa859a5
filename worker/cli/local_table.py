"""A table in a file of this machine, read as the service reads an upload."""

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pydantic

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.reading import ReadDataset, read_csv_texts, read_dataset
from service.datasets.stored_table import Texts
from service.datasets.vocabulary import DatasetFormat
from service.results.schemas import DatasetIdentity
from worker.cli.client import JsonObject
from worker.cli.validation import validated
from worker.jobs.difference_sides import shortest


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
        dataset_id: str,
        limits: ReadLimits,
        labels: str | None = None,
    ) -> Self:
        """Read a file, whose column of the name `labels`, if any, may be one of texts.

        Raises `ProblemError` for what cannot be read or is above `limits`.
        """
        options = validated(pydantic.TypeAdapter(ReadOptions), reading)
        content = path.read_bytes()
        dataset = read_dataset(content, options, limits, labels=labels)
        if labels is not None and dataset.labels.num_rows:
            dataset = replace(dataset, table=_labelled(dataset, labels))
        is_csv = dataset.format is DatasetFormat.CSV
        return cls(
            dataset,
            partial(read_csv_texts, content, dataset.summary) if is_csv else None,
            DatasetIdentity(
                id=dataset_id, name=path.name, sha256=hashlib.sha256(content).hexdigest()
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


def _labelled(dataset: ReadDataset, name: str) -> pa.Table:
    """Return the table with a column that holds texts as one of texts."""
    place = dataset.table.column_names.index(name)
    cells = dataset.table[name].to_pylist()
    texts = [None if cell is None else shortest(cell) for cell in cells]
    for row, text in zip(*(column.to_pylist() for column in dataset.labels.columns), strict=True):
        texts[row - 1] = text
    return dataset.table.set_column(place, name, pa.array(texts, pa.string()))

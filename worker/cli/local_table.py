"""A table in a file of this machine, read as the service reads an upload."""

import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import pydantic

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.reading import ReadDataset, read_csv_texts, read_dataset
from service.datasets.stored_table import Texts
from service.datasets.vocabulary import DatasetFormat
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
    def read(cls, path: Path, reading: JsonObject, request: JsonObject, limits: ReadLimits) -> Self:
        """Read the file of a `request`, whose column of clusters holds labels.

        Raises `ProblemError` for what cannot be read or is above `limits`.
        """
        if (cluster := request.get("cluster")) is not None:
            reading = reading | {"labels": [*reading.get("labels", []), cluster]}
        options = validated(pydantic.TypeAdapter(ReadOptions), reading)
        content = path.read_bytes()
        dataset = read_dataset(content, options, limits)
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

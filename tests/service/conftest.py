"""Data sets in a database of either kind."""

from collections.abc import Callable

import pytest

from service import blobs
from service.database import Database
from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.reading import read_dataset
from service.datasets.records import DatasetRecord, GroundTruthRecord
from service.identifiers import new_id
from service.settings import Settings

AddDataset = Callable[..., str]


@pytest.fixture
def add_dataset(database: Database) -> AddDataset:
    """Return a function that stores a CSV text with its true edges and returns its id."""

    def add(csv: str, truth: list[list[str]] | None = None) -> str:
        content = csv.encode()
        read = read_dataset(content, ReadOptions(), ReadLimits.from_settings(Settings()))
        with database.transaction() as session:
            blob = blobs.store(session, content)
            dataset = DatasetRecord(
                id=new_id("ds"),
                name="table.csv",
                format=read.format,
                num_rows=read.summary.n_rows,
                num_columns=read.summary.n_columns,
                summary=read.summary.model_dump(mode="json"),
                original_blob_id=blob.id,
                table_blob_id=blob.id,
            )
            session.add(dataset)
            session.flush()
            if truth is not None:
                session.add(GroundTruthRecord(dataset_id=dataset.id, edges=truth))
        return dataset.id

    return add

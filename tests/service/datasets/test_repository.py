"""Data sets on both databases."""

import io
from concurrent.futures import ThreadPoolExecutor, wait

import pyarrow as pa
import pytest
from sqlalchemy import delete, select

from service.datasets import endpoints, repository
from service.datasets.records import GroundTruthRecord
from service.datasets.repository import NewDataset
from service.datasets.stored_table import from_parquet, to_parquet
from service.datasets.vocabulary import DatasetFormat
from service.db import blobs
from service.db.identifiers import new_id
from service.http.problems import ProblemError


def new_dataset(name: str, original: bytes = b"a,b\n1,2\n") -> NewDataset:
    return NewDataset(
        id=new_id("dataset"),
        name=name,
        format=DatasetFormat.CSV,
        num_rows=1,
        num_columns=2,
        summary={"unicode": "水"},
        original=io.BytesIO(original),
        table=to_parquet(pa.table({"a": [1.0], "b": [2.0]})),
        cells=None,
    )


def test_names_of_every_kind_are_kept(database):
    name = "ü水🌿 \"';--\r\n\t../\\"
    with database.transaction() as session:
        added = repository.add(session, new_dataset(name))
    with database.snapshot() as session:
        found = repository.find(session, added.record.id)
    assert (found.record.name, found.record.summary) == (name, {"unicode": "水"})


def test_bytes_come_back_in_chunks(database):
    content = bytes(range(256)) * (3 * blobs.CHUNK_BYTES // 256) + b"rest"
    with database.transaction() as session:
        added = repository.add(session, new_dataset("large", content))
    chunks = list(blobs.stream(database, added.original))
    assert b"".join(chunks) == content
    assert max(map(len, chunks)) == blobs.CHUNK_BYTES
    assert added.original.size == len(content)


def test_a_place_in_the_list_is_kept_when_items_share_their_time(database):
    with database.transaction() as session:
        for i in range(6):
            repository.add(session, new_dataset(f"{i}")).record.created_at = 1000.0 + i // 3
    seen = []
    with database.snapshot() as session:
        place = None
        while page := repository.newest(session, 2, place):
            seen += [stored.record.id for stored in page]
            place = (page[-1].record.created_at, page[-1].record.id)
    assert len(set(seen)) == len(seen) == 6


def test_of_true_graphs_that_come_at_once_one_is_the_first_and_one_stays(database):
    with database.transaction() as session:
        dataset_id = repository.add(session, new_dataset("one")).record.id

    def attach(number: int) -> bool:
        with database.transaction() as session:
            repository.lock(session, dataset_id)
            return repository.put_ground_truth(session, dataset_id, [[str(number)]])[1]

    with ThreadPoolExecutor(8) as pool:
        are_first = list(pool.map(attach, range(16)))
    assert sum(are_first) == 1
    with database.snapshot() as session:
        assert len(session.scalars(select(GroundTruthRecord)).all()) == 1


def test_of_two_who_detach_a_true_graph_at_once_the_second_finds_none(database):
    with database.transaction() as session:
        dataset_id = repository.add(session, new_dataset("x")).record.id
        repository.put_ground_truth(session, dataset_id, [["a", "b"]])
    with ThreadPoolExecutor(1) as pool:
        with database.transaction() as session:
            session.execute(delete(GroundTruthRecord))
            second = pool.submit(endpoints.delete_ground_truth, dataset_id, database)
            wait([second], timeout=0.5)  # it waits for the first
            assert not second.done()
        with pytest.raises(ProblemError, match="No true graph"):
            second.result()


def test_a_failed_upload_leaves_nothing(database):
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError("the disk is gone")

    with pytest.raises(OSError, match="gone"), database.transaction() as session:
        repository.add(session, NewDataset(**{**vars(new_dataset("x")), "original": Broken()}))
    with database.snapshot() as session:
        assert repository.newest(session, 10, None) == []


def test_every_double_survives_storage_to_the_last_bit():
    values = [0.1, -0.0, 5e-324, 1.7976931348623157e308, None, 1 / 3]
    table = pa.table({"a": pa.array(values, pa.float64())})
    stored = from_parquet(to_parquet(table))
    assert [v and v.hex() for v in stored["a"].to_pylist()] == [v and v.hex() for v in values]
    assert str(stored["a"][1].as_py()) == "-0.0"

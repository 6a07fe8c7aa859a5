"""Parquet and Arrow: types, gaps, labels, damage and size."""

import io
import json
import pickle
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def parquet(table: pa.Table, **options) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def arrow_file(table: pa.Table, batch_rows: int = 3) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=batch_rows)
    return sink.getvalue()


def arrow_stream(table: pa.Table, batch_rows: int = 3, compression: str | None = None) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=batch_rows)
    return sink.getvalue()


WRITERS = pytest.mark.parametrize("write", [parquet, arrow_file, arrow_stream])


def typed_table() -> pa.Table:
    return pa.table(
        {
            "dec": pa.array([Decimal("1.10"), None, Decimal("3.30"), Decimal("2.20")]),
            "i32": pa.array([1, 2, None, 4], pa.int32()),
            "f32": pa.array([0.1, 0.2, 0.3, None], pa.float32()),
            "f16": pa.array([0.5, None, 2.0, 1.0], pa.float16()),
            "flag": pa.array([True, None, False, True]),
            "u64": pa.array([2**63 + 1, 1, 2, 3], pa.uint64()),
            "gap": pa.array([float("nan"), None, 1.0, 2.0]),
            "empty": pa.nulls(4),
        }
    )


@WRITERS
def test_numbers_of_every_type_become_doubles_with_their_gaps(read, write):
    dataset = read(write(typed_table()))
    assert dataset.table.to_pydict() == {
        "dec": [1.1, None, 3.3, 2.2],
        "i32": [1.0, 2.0, None, 4.0],
        "f32": [0.10000000149011612, 0.20000000298023224, 0.30000001192092896, None],
        "f16": [0.5, None, 2.0, 1.0],
        "flag": [1.0, None, 0.0, 1.0],
        "u64": [2.0**63, 1.0, 2.0, 3.0],
        "gap": [None, None, 1.0, 2.0],
        "empty": [None] * 4,
    }
    tokens = {t.text: t.count for c in dataset.summary.columns for t in c.tokens if c.name == "gap"}
    assert tokens == {"NaN": 1, "null": 1}
    assert {change.code: change.columns for change in dataset.summary.changes} == {
        "booleans-read-as-numbers": ["flag"],
        "rounded-to-double": ["dec"],
    }
    warned = {warning.code: warning.columns for warning in dataset.summary.warnings}
    assert warned["large-integers"] == ["u64"]
    assert warned["no-observed-value"] == ["empty"]


REFUSED_TYPES = {
    "category": pa.array(["lo", "hi"]).dictionary_encode(),
    "date": pa.array([1, 2], pa.date32()),
    "time": pa.array([1, 2], pa.timestamp("us")),
    "list": pa.array([[1.0], [2.0]]),
    "struct": pa.array([{"x": 1.0}, {"x": 2.0}]),
    "bytes": pa.array([b"1", b"2"]),
    "extension": pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([b"1" * 16] * 2, pa.binary(16))
    ),
}


@WRITERS
@pytest.mark.parametrize("kind", REFUSED_TYPES)
def test_types_that_are_no_numbers_are_refused_by_name(refuse, write, kind):
    table = pa.table({"x": [1.0, 2.0], kind: REFUSED_TYPES[kind]})
    assert [item.column for item in refuse(write(table)).errors] == [kind]


class Payload:
    """Says so in a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, ...]:
        return open, (str(self.file), "w")


@WRITERS
@pytest.mark.parametrize("name", ["arrow.py_extension_type", "somebody.unit"])
def test_extension_types_that_look_like_numbers_are_refused_and_never_unpickled(
    refuse, write, tmp_path, name
):
    ran = tmp_path / "ran"
    described = {
        "ARROW:extension:name": name,
        "ARROW:extension:metadata": pickle.dumps(Payload(ran)),
    }
    schema = pa.schema(
        [pa.field("x", pa.float64()), pa.field("y", pa.float64(), metadata=described)]
    )
    (item,) = refuse(write(pa.table([[1.0], [2.0]], schema=schema))).errors
    assert (item.column, name in item.message) == ("y", True)
    assert not ran.exists()


def test_a_footer_that_names_another_file_is_not_followed(read):
    collected, content, footer = [], io.BytesIO(), io.BytesIO()
    pq.write_table(pa.table({"x": [1.0, 2.0]}), content, metadata_collector=collected)
    collected[0].set_file_path("http://localhost/secret.parquet")
    collected[0].write_metadata_file(footer)
    body = content.getvalue()
    length = int.from_bytes(body[-8:-4], "little")
    assert read(body[: -8 - length] + footer.getvalue()[4:]).table["x"].to_pylist() == [1.0, 2.0]


SCRIPT = """
import io
import pyarrow as pa
import pyarrow.parquet as pq
from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.reading import read_dataset
from service.http.problems import ProblemError

sink = io.BytesIO()
pq.write_table(pa.table({"x": [1.0, 2.0]}), sink, write_statistics=False, store_schema=False)
content = sink.getvalue()
length = int.from_bytes(content[-8:-4], "little")
limits = ReadLimits(1000, 10, 10, 100_000)
statuses = set()
for place in range(len(content) - 8 - length, len(content)):
    for bit in range(8):
        damaged = bytearray(content)
        damaged[place] ^= 1 << bit
        try:
            read_dataset(bytes(damaged), ReadOptions(), limits)
        except ProblemError as problem:
            statuses.add(problem.status)
print(statuses <= {413, 422}, len(statuses) > 0)
"""


@pytest.mark.slow
def test_a_parquet_footer_may_be_wrong_in_any_bit_and_the_process_lives():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, b"True True\n"), done.stderr


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_texts_of_any_encoding_are_read(read, encoding):
    table = pa.table({"x": ["1.5", None, "<2"], "y": [1, 2, 3]})
    content = parquet(table, use_dictionary=False, column_encoding={"x": encoding})
    assert read(content).table["x"].to_pylist() == [1.5, None, None]


@pytest.mark.parametrize("write", [arrow_file, arrow_stream])
def test_categories_of_numbers_are_refused_where_the_format_keeps_them(refuse, write):
    table = pa.table({"x": [1.0, 2.0], "c": pa.array([1.0, 2.0]).dictionary_encode()})
    assert [item.column for item in refuse(write(table)).errors] == ["c"]


@WRITERS
def test_texts_are_read_like_csv_cells(read, refuse, write):
    dataset = read(write(pa.table({"x": ["1.5", "<0.5", None, "NA", "2"], "y": range(5)})))
    assert dataset.table["x"].to_pylist() == [1.5, None, None, None, 2.0]
    assert dataset.cells.to_pylist() == [
        {"row": 2, "column": "x", "text": "<0.5", "lower": None, "upper": 0.5}
    ]
    assert [change.code for change in dataset.summary.changes] == ["text-read-as-numbers"]
    (item,) = refuse(write(pa.table({"x": ["1", "2", "3", "4", "low"], "y": range(5)}))).errors
    assert (item.column, item.row, item.cell) == ("x", 5, "low")


@WRITERS
def test_infinite_values_are_refused_with_their_row(refuse, write):
    table = pa.table({"x": [1.0, 2.0, 3.0, 4.0, float("-inf")], "y": [1.0] * 5})
    (item,) = refuse(write(table)).errors
    assert (item.column, item.row, item.cell) == ("x", 5, "-inf")


@WRITERS
def test_numbers_that_mean_missing_are_masked(read, write):
    table = pa.table({"x": [1.0, -999.0], "y": pa.array([-999, 2], pa.int16())})
    dataset = read(write(table), na_values=["-999"])
    assert dataset.table.to_pydict() == {"x": [1.0, None], "y": [None, 2.0]}


@WRITERS
@pytest.mark.parametrize("name", [None, "sample"])
def test_the_index_of_a_data_frame_is_excluded_and_reported(read, write, name):
    index = pd.Index([10, 20, 30, 40], name=name)
    frame = pd.DataFrame({"p": [1.0, 2.0, None, 1.5], "q": [0.1, None, 0.3, 0.2]}, index=index)
    dataset = read(write(pa.Table.from_pandas(frame)))
    assert dataset.table.column_names == ["p", "q"]
    (change,) = dataset.summary.changes
    assert (change.code, change.columns) == (
        "index-column-excluded",
        [name or "__index_level_0__"],
    )


def test_an_index_is_known_by_its_name_without_metadata(read):
    content = parquet(pa.table({"p": [1.0, 2.0], "__index_level_0__": [5, 6]}))
    assert read(content).table.column_names == ["p"]


@WRITERS
def test_damaged_metadata_of_a_data_frame_is_refused(refuse, write):
    table = pa.table({"p": [1.0, 2.0], "q": [5, 6]}).replace_schema_metadata({"pandas": "[]"})
    assert refuse(write(table)).status == 422


@WRITERS
def test_repeated_names_are_refused(refuse, write):
    table = pa.table([[1.0], [2.0]], names=["x", "x"])
    assert refuse(write(table)).errors[0].column == "x"


@WRITERS
def test_a_table_without_rows_or_columns_is_refused(refuse, write):
    assert refuse(write(pa.table({"x": pa.array([], pa.float64())}))).status == 422
    assert refuse(write(pa.table({}))).status == 422


@WRITERS
def test_a_cut_off_file_is_refused(refuse, write):
    content = write(typed_table())
    assert refuse(content[: len(content) // 2]).status == 422


@pytest.mark.parametrize("option", [{"delimiter": ";"}, {"units_row": True}, {"encoding": "utf-8"}])
@WRITERS
def test_options_that_mean_nothing_are_refused(refuse, write, option):
    (item,) = refuse(write(typed_table()), **option).errors
    assert item.parameter in option


@pytest.mark.parametrize(
    "content",
    [
        parquet(pa.table({"x": pa.array([0.0] * 200_000)}), row_group_size=50_000),
        arrow_file(pa.table({"x": pa.nulls(200_000)}), 50_000),
        arrow_stream(pa.table({"x": pa.nulls(200_000)}), 50_000),
        arrow_stream(pa.table({"x": pa.array([0.0] * 200_000)}), 50_000, "zstd"),
    ],
    ids=["parquet", "file", "stream", "compressed"],
)
def test_a_small_file_that_unfolds_beyond_the_limit_is_refused(refuse, content):
    assert len(content) < 500_000
    assert refuse(content).status == 413


def test_a_parquet_file_that_announces_more_bytes_than_allowed_is_refused(refuse, limits):
    text = "1" * (limits.max_decoded_bytes // 20 + 1)
    table = pa.table({"x": [f"{row}{text}" for row in range(20)], "y": range(20)})
    content = parquet(table, use_dictionary=False, compression="zstd")
    assert len(content) < 50_000
    problem = refuse(content)
    assert problem.status == 413
    assert "VNCE_MAX_DECODED_BYTES" in problem.detail


def test_long_repeated_texts_of_a_parquet_file_take_little_memory(refuse):
    num_rows, length = 20_000, 1_000_000
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * num_rows, pa.int32()), ["1" * length])
    content = parquet(pa.table({"x": texts, "y": range(num_rows)}), store_schema=False)
    before = pa.default_memory_pool().max_memory()
    assert refuse(content).errors[0].column == "x"
    assert pa.default_memory_pool().max_memory() - before < num_rows * length / 20


def test_the_same_table_is_the_same_in_every_format(read):
    rows = {"a": [0.1, None, 3.0], "b": [1e-300, 2.5, None]}
    table = pa.table(rows)
    records = [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    csv = "a,b\n0.1,1e-300\n,2.5\n3.0,\n"
    contents = [csv, json.dumps(records), json.dumps(rows), parquet(table), arrow_file(table)]
    assert all(read(content).table.equals(table) for content in contents)

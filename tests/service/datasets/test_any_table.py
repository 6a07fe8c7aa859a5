"""Any table, written in any dialect, reads back exactly; any damage is a problem, not a crash."""

import csv
import io
import json
import unicodedata

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.reading import ReadDataset, read_dataset
from service.http.problems import ProblemError

LIMITS = ReadLimits(max_cells=10_000, max_columns=100, max_name_length=60, max_decoded_bytes=2**20)
MISSING = ("", "NA", "nan", "N/A", "NULL", "None", "  ")
Rows = list[list[float | None]]

doubles = st.floats(allow_nan=False, allow_infinity=False)
cells = st.none() | doubles


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], Rows]:
    """Draw names and rows; no name or column that reading judges specially."""
    letters = st.characters(categories=["Lu", "Ll", "Lo"], exclude_characters="�")
    name = st.text(letters, min_size=1, max_size=8).map(lambda text: "x" + text)
    names = draw(st.lists(name, min_size=2, max_size=6, unique_by=lambda n: _folded(n)))
    row = st.lists(cells, min_size=len(names), max_size=len(names))
    return names, draw(st.lists(row, min_size=1, max_size=12))


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _read(content: bytes, **options: object) -> ReadDataset:
    return read_dataset(content, ReadOptions.model_validate(options), LIMITS)


def _read_or_refuse(content: bytes, **options: object) -> ReadDataset | ProblemError:
    """Return the table or the problem; anything else that is raised fails the test."""
    try:
        return _read(content, **options)
    except ProblemError as problem:
        return problem


def _written(names: list[str], rows: Rows, draw: st.DataObject, **dialect: str) -> str:
    """Return the table as CSV text, its gaps and numbers spelled in different ways."""
    decimal = dialect.pop("decimal")
    sink = io.StringIO()
    quoting = draw.draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    writer = csv.writer(sink, quoting=quoting, **dialect)
    writer.writerow(names)
    for row in rows:
        texts = [
            draw.draw(st.sampled_from(MISSING))
            if cell is None
            else repr(cell).replace(".", decimal)
            for cell in row
        ]
        writer.writerow(texts)
    return sink.getvalue()


def _columns(names: list[str], rows: Rows) -> dict[str, list[float | None]]:
    columns = zip(*rows, strict=True)
    return {_folded(name): list(column) for name, column in zip(names, columns, strict=True)}


@given(
    table=tables(),
    draw=st.data(),
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    decimal=st.sampled_from([".", ","]),
    lineterminator=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
)
def test_any_table_in_any_declared_dialect_reads_back(
    table, draw, delimiter, decimal, lineterminator, encoding
):
    names, rows = table
    text = _written(
        names, rows, draw, delimiter=delimiter, lineterminator=lineterminator, decimal=decimal
    )
    dataset = _read(text.encode(encoding), delimiter=delimiter, decimal=decimal)
    assert dataset.table.to_pydict() == _columns(names, rows)
    assert dataset.summary.n_missing == sum(cell is None for row in rows for cell in row)


@given(
    table=tables(),
    draw=st.data(),
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    decimal=st.sampled_from([".", ","]),
)
def test_an_undeclared_dialect_is_found_or_asked_for(table, draw, delimiter, decimal):
    names, rows = table
    text = _written(names, rows, draw, delimiter=delimiter, lineterminator="\n", decimal=decimal)
    outcome = _read_or_refuse(text.encode())
    if isinstance(outcome, ProblemError):
        assert outcome.status == 422
    else:
        assert outcome.table.to_pydict() == _columns(names, rows)


@given(table=tables())
def test_any_table_reads_back_from_json_parquet_and_arrow(table):
    names, rows = table
    columns = _columns(names, rows)
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    arrow = pa.table({name: pa.array(cells, pa.float64()) for name, cells in columns.items()})
    for content in (json.dumps(records).encode(), json.dumps(columns).encode(), *_files(arrow)):
        assert _read(content).table.to_pydict() == columns


def _files(table: pa.Table) -> list[bytes]:
    parquet, file, stream = io.BytesIO(), io.BytesIO(), io.BytesIO()
    pq.write_table(table, parquet)
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(stream, table.schema, options=options) as writer:
        writer.write_table(table)
    return [sink.getvalue() for sink in (parquet, file, stream)]


SAMPLE = pa.table({"a": [1.5, None, 3.0], "t": ["<0.5", "2", None], "n": [1, 2, None]})
SEEDS = [
    b'a,b;c\n1.5,"2",<0.5\n\nNA,,3e5\n',
    "\ufeffa;b\r\n1,5;ND\r\n".encode(),
    "a\tb\n1\t2\n".encode("utf-16"),
    b'[{"a": 1.5, "b": null}, {"b": "<0.5"}]',
    b'{"columns": ["a", "b"], "data": [[1, true], [null, "NA"]]}',
    *_files(SAMPLE),
]


@given(
    seed=st.sampled_from(SEEDS),
    edits=st.lists(
        st.tuples(st.integers(0, 5000), st.binary(max_size=4), st.integers(0, 8)), max_size=5
    ),
)
# A wrong null count in an Arrow file, which Arrow believes unless it is asked to check.
@example(seed=SEEDS[6], edits=[(449, b"\x01", 1)])
def test_damaged_bytes_give_a_table_or_a_problem(seed, edits):
    content = bytearray(seed)
    for place, inserted, removed in edits:
        start = place % (len(content) + 1)
        content[start : start + removed] = inserted
    outcome = _read_or_refuse(bytes(content))
    if isinstance(outcome, ProblemError):
        assert outcome.status in (413, 415, 422)
    else:
        summary = outcome.summary
        counted = summary.n_observed + summary.n_missing + summary.n_censored + summary.n_unknown
        assert counted == summary.n_rows * summary.n_columns
        assert outcome.table.num_rows == summary.n_rows


@pytest.mark.slow
@given(content=st.binary(max_size=60) | st.text(max_size=40).map(str.encode))
@pytest.mark.parametrize("name", ["auto", "csv", "json", "parquet", "arrow"])
def test_arbitrary_bytes_give_a_table_or_a_problem(name, content):
    outcome = _read_or_refuse(content, format=name)
    assert isinstance(outcome, ReadDataset) or outcome.status in (413, 415, 422)

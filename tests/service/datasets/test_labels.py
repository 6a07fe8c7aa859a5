"""Columns of labels: which texts are equal is all that is kept of them."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.datasets.vocabulary import ChangeCode

CSV = "who,a\nAnn,1\n Bob ,2\nAnn,3\nNA,4\n7,5\n<1,6\n"
NUMBERED = [0.0, 1.0, 0.0, None, 2.0, 3.0]


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def test_texts_become_whole_numbers_as_they_occur(read):
    dataset = read(CSV, labels=["who"])
    assert dataset.table["who"].to_pylist() == NUMBERED
    assert dataset.table["a"].to_pylist() == [1, 2, 3, 4, 5, 6]
    assert not dataset.cells.num_rows
    [change] = [c for c in dataset.summary.changes if c.code is ChangeCode.LABELS_NUMBERED]
    assert (change.columns, change.count) == (["who"], 4)


def test_a_number_is_kept_over_all_blocks_of_a_file(read):
    rows = "".join(f"p{row % 5000},{row}\n" for row in range(45_000))
    dataset = read(f"who,a\n{rows}", labels=[" who "])
    assert dataset.table["who"].to_pylist() == [float(row % 5000) for row in range(45_000)]


def test_a_number_that_stands_for_missing_is_none_of_a_label(read):
    dataset = read("who,a\nx,1\ny,2\nz,3\n", labels=["who"], na_values=["1"])
    assert dataset.table["who"].to_pylist() == [0.0, 2.0, 3.0]
    assert dataset.table["a"].to_pylist() == [None, 2.0, 3.0]


def test_labels_of_parquet_and_json_are_numbered_and_numbers_stay(read):
    long = "x" * 500
    table = pa.table({"who": ["b", f"{long}1", f"{long}2", "b", None], "n": [7, 7, 3, 3, 9]})
    dataset = read(parquet(table), labels=["who", "n"])
    assert dataset.table["who"].to_pylist() == [0.0, 1.0, 2.0, 0.0, None]
    assert dataset.table["n"].to_pylist() == [7.0, 7.0, 3.0, 3.0, 9.0]
    assert [change.code for change in dataset.summary.changes] == [ChangeCode.LABELS_NUMBERED]
    dataset = read('{"who": ["1", 0, "b", 1, null], "n": [5, 5, 6, 7, 8]}', labels=["who", "n"])
    assert dataset.table["who"].to_pylist() == [0.0, 1.0, 2.0, 0.0, None]
    assert dataset.table["n"].to_pylist() == [5.0, 5.0, 6.0, 7.0, 8.0]


def test_categories_of_texts_are_labels(read):
    who = pa.array(["b", "a", "b", None]).dictionary_encode()
    dataset = read(parquet(pa.table({"who": who, "n": [1, 2, 3, 4]})), labels=["who"])
    assert dataset.table["who"].to_pylist() == [0.0, 1.0, 0.0, None]
    assert dataset.labels == {"who": {0: "b", 1: "a"}}


def test_a_column_that_is_not_there_is_refused(refuse):
    problem = refuse(CSV, labels=["who", "plate"])
    assert "plate" in problem.detail
    assert [(item.parameter, item.column) for item in problem.errors] == [("labels", "plate")]


@pytest.mark.parametrize("options", [{}, {"labels": ["a"]}])
def test_texts_elsewhere_are_refused_and_the_refusal_names_the_option(refuse, options):
    assert "`labels`" in refuse(CSV, **options).detail

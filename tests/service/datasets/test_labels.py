"""A column that may hold texts, as labels of groups of rows; no other may."""

import io
from collections.abc import Callable

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.reading import read_dataset
from service.http.problems import ProblemError

FRAME = pd.DataFrame(
    {"a": [1.0, 2.0, 3.0, 4.0, 5.0], "group": ["case", "<5", "NA", " control ", "2"]}
)


def _parquet(frame: pd.DataFrame) -> bytes:
    return frame.to_parquet()


def _arrow(frame: pd.DataFrame) -> bytes:
    file = io.BytesIO()
    pyarrow.feather.write_feather(pa.Table.from_pandas(frame), file, compression="uncompressed")
    return file.getvalue()


def _csv(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


def _json(frame: pd.DataFrame) -> bytes:
    return frame.to_json(orient="records").encode()


WRITERS = [_csv, _json, _parquet, _arrow]
Write = Callable[[pd.DataFrame], bytes]


@pytest.mark.parametrize("write", WRITERS)
def test_texts_of_the_labels_are_told_by_row_and_numbers_are_in_the_table(
    write: Write, limits: ReadLimits
) -> None:
    read = read_dataset(write(FRAME), ReadOptions(), limits, labels="group")
    assert sorted(read.labels.to_pylist(), key=lambda cell: cell["row"]) == [
        {"row": 1, "text": "case"},
        {"row": 2, "text": "<5"},
        {"row": 4, "text": "control"},
    ]
    assert read.table["group"].to_pylist() == [None, None, None, None, 2.0]
    assert read.table["a"].to_pylist() == FRAME["a"].tolist()
    assert not any("Texts" in change.message for change in read.summary.changes)


@pytest.mark.parametrize("write", [_parquet, _arrow])
def test_categories_of_texts_are_labels_too(write: Write, limits: ReadLimits) -> None:
    frame = FRAME.assign(group=FRAME["group"].astype("category"))
    read = read_dataset(write(frame), ReadOptions(), limits, labels="group")
    assert {cell["text"] for cell in read.labels.to_pylist()} == {"case", "<5", "control"}


@pytest.mark.parametrize("write", WRITERS)
def test_texts_of_other_columns_are_refused_as_ever(write: Write, limits: ReadLimits) -> None:
    frame = FRAME.assign(other=["much", "1", "2", "3", "4"])
    with pytest.raises(ProblemError, match="'much' in 'other'") as refused:
        read_dataset(write(frame), ReadOptions(), limits, labels="group")
    assert {item.column for item in refused.value.errors} == {"other"}


def test_without_such_a_column_there_are_no_labels(limits: ReadLimits) -> None:
    read = read_dataset(b"a,b\n1,2\n3,4\n", ReadOptions(), limits, labels="group")
    assert read.labels.num_rows == 0

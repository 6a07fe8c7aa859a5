"""The cells of CSV uploads as they were written, for files that give them back."""

import math
from typing import Any

import pytest

from service.datasets.reading import read_csv_texts

LARGE = "id,x\n9007199254740993,0.10\nNA,+1e2\n12345678901234567890,\n"


def texts_of(read: Any, content: str | bytes, **options: Any) -> list[list[str]]:
    """Return the texts of all variables, having compared them with the numbers."""
    body = content.encode() if isinstance(content, str) else content
    dataset = read(body, **options)
    rows = list(read_csv_texts(body, dataset.summary, dataset.table.column_names))
    columns = [column.to_pylist() for column in dataset.table.columns]
    for texts, numbers in zip(rows, zip(*columns, strict=True), strict=True):
        for text, number in zip(texts, numbers, strict=True):
            assert number is None or float(text) == number
    return rows


def test_digits_are_those_of_the_upload(read: Any) -> None:
    assert texts_of(read, LARGE) == [
        ["9007199254740993", "0.10"],
        ["NA", "+1e2"],
        ["12345678901234567890", ""],
    ]


def test_only_the_variables_asked_for_are_given_in_their_order(read: Any) -> None:
    summary = read(LARGE).summary
    first = next(read_csv_texts(LARGE.encode(), summary, ["x", "id"]))
    assert first == ["0.10", "9007199254740993"]


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("a;b\n1,50;2\n 3,25 ;\n", {}),
        ("sep=;\na;b\n1.0;2\n3;4\n", {}),
        ("\n\ntitle\nx,y\nmg,kg\n1.0,2\n\n3,-999\n", {"skip_rows": 3, "units_row": True}),
        (",a,b\n0,1.0,2\n1,3,4\n2,5.50,6\n", {}),
        ('"a, b", "c"\n1.0, 2\n"3", 4\n', {}),
        ("a\tb\r1.0\t2\r3\t4\r", {}),
        ("a,b\r\n1.0,2\r\n3,4".encode("utf-16"), {}),
        ("ä,b\n1.0,2\n3,4\n".encode("cp1252"), {"encoding": "cp1252"}),
        ("a,b\n1.0,2\n3,4\n".encode("utf-16-le"), {"encoding": "utf-16-le"}),
    ],
)
def test_rows_are_those_that_were_read_however_the_file_is_written(
    read: Any, content: str | bytes, options: dict[str, Any]
) -> None:
    rows = texts_of(read, content, **options)
    assert len(rows) == (3 if isinstance(content, str) and content.startswith(",a") else 2)
    assert not math.isnan(float(rows[0][0]))
    assert any("." in text for row in rows for text in row)

"""Whatever a name is, no spreadsheet runs it, and numbers stay numbers."""

import csv
import re
from io import StringIO
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from worker.artefacts.exports.csv_text import csv_bytes

FORMULA_STARTS = tuple("=+-@＝＋－＠\t\r\n")
ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
# What a formula needs, and what may part cells.
SPITEFUL = st.text("=+-@＝;,\t\r\n '\"x", max_size=8)
TEXTS = ANYTHING | SPITEFUL
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)


def name_of(written: str) -> str:
    """Return the name that was written: without one apostrophe where a cell may begin."""
    return re.sub(r"(^|[;\t\r\n])'", r"\1", written)


@given(
    names=st.lists(TEXTS, min_size=2, max_size=2),
    rows=st.lists(st.tuples(TEXTS, NUMBERS), max_size=4),
)
@example(names=["=1+1", "'=1+1"], rows=[("-2+3", -2), ('@x,"y"', -0.0), ("\r=1", -1e-300)])
@example(names=["x;=cmd", "x;'=cmd"], rows=[("x; =cmd", 1), ('";=cmd', 2), ("x\n=cmd;-1", 3)])
def test_any_text_is_harmless_and_comes_back_and_numbers_are_exact(
    names: list[str], rows: list[tuple[str, float]]
) -> None:
    text = csv_bytes(names, rows).decode()
    header, *body = csv.reader(StringIO(text, newline=""))
    assert [name_of(written) for written in header] == names
    for written in header:
        assert not written.lstrip(" ").startswith(FORMULA_STARTS)
    for (label, number), (known, value) in zip(body, rows, strict=True):
        assert not label.lstrip(" ").startswith(FORMULA_STARTS)
        assert name_of(label) == known
        assert not number.startswith("'")
        assert (float(number), type(value)(float(number))) == (value, value)


@given(rows=st.lists(st.tuples(TEXTS, TEXTS, NUMBERS), max_size=4))
@example(rows=[("a", "x;=cmd", -1), ("a", 'x";=cmd;"', -1), ("a,b", "\t@cmd", -1), ("", ';"=x', 1)])
@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_NONE])
def test_no_cell_is_a_formula_where_other_delimiters_are_used(
    delimiter: str, quoting: Any, rows: list[tuple[str, str, float]]
) -> None:
    text = csv_bytes(["a", "b", "c"], rows).decode()
    # A spreadsheet that knows no quotes ends its rows at every line end.
    knows_quotes = quoting == csv.QUOTE_MINIMAL
    lines = StringIO(text, newline="") if knows_quotes else re.split(r"[\r\n]+", text)
    for cells in csv.reader(lines, delimiter=delimiter, quoting=quoting):
        for cell in cells:
            assert not cell.lstrip(" ").startswith(FORMULA_STARTS), text


def test_numbers_of_numpy_are_written_like_ours() -> None:
    assert csv_bytes(["x"], [[np.float64(-0.1)], [np.int64(-7)]]) == b"x\n-0.1\n-7\n"

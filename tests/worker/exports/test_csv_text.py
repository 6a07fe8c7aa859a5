"""Whatever a name is, no spreadsheet runs it, and numbers stay numbers."""

import csv
from io import StringIO

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from worker.exports.csv_text import csv_bytes

FORMULA_STARTS = tuple("=+-@＝＋－＠\t\r\n")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)


@settings(deadline=None, derandomize=True)
@given(
    names=st.lists(TEXTS, min_size=2, max_size=2),
    rows=st.lists(st.tuples(TEXTS, NUMBERS), max_size=4),
)
@example(names=["=1+1", "'=1+1"], rows=[("-2+3", -2), ('@x,"y"', -0.0), ("\r=1", -1e-300)])
def test_any_text_is_harmless_and_comes_back_and_numbers_are_exact(
    names: list[str], rows: list[tuple[str, float]]
) -> None:
    text = csv_bytes(names, rows).decode()
    header, *body = csv.reader(StringIO(text, newline=""))
    for written, name in zip(header, names, strict=True):
        assert not written.startswith(FORMULA_STARTS)
        assert written in (name, "'" + name)
    for (label, number), (known, value) in zip(body, rows, strict=True):
        assert not label.startswith(FORMULA_STARTS)
        assert label in (known, "'" + known)
        assert not number.startswith("'")
        assert (float(number), type(value)(float(number))) == (value, value)


def test_numbers_of_numpy_are_written_like_ours() -> None:
    assert csv_bytes(["x"], [[np.float64(-0.1)], [np.int64(-7)]]) == b"x\n-0.1\n-7\n"

import csv
import json
from io import BytesIO, StringIO

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

from service.jobs.vocabulary import Transform
from worker.artefacts.exports.csv_text import csv_bytes, safe_name
from worker.artefacts.exports.tables import matrix_artefacts

NAMES = ["体重", "=1+1", "a,b", "-x"]
# Numbers whose digits are easily lost: tiny, subnormal, huge, negative zero, a third.
NUMBERS = np.array(
    [
        [1 / 3, -1e-300, 5e-324, 1.7976931348623157e308],
        [-1e-300, 0.1 + 0.2, -0.0, 2.0**53 + 2],
        [5e-324, -0.0, 1.0, -7.0],
        [1.7976931348623157e308, 2.0**53 + 2, -7.0, 123456.789],
    ]
)


@pytest.fixture
def matrix_files() -> dict[str, bytes]:
    artefacts = matrix_artefacts("precision", NAMES, NUMBERS, Transform.CBRT)
    return {artefact.name: artefact.content for artefact in artefacts}


def same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return np.asarray(one, dtype=float).tobytes() == np.asarray(other, dtype=float).tobytes()


def test_json_gives_every_bit_back(matrix_files: dict[str, bytes]) -> None:
    document = json.loads(matrix_files["precision.json"])
    assert document["names"] == NAMES
    assert document["transform"] == "cbrt"
    assert same_bits(document["values"], NUMBERS)


def test_npy_gives_every_bit_back(matrix_files: dict[str, bytes]) -> None:
    assert same_bits(np.load(BytesIO(matrix_files["precision.npy"])), NUMBERS)


def test_parquet_gives_names_and_every_bit_back(matrix_files: dict[str, bytes]) -> None:
    table = pyarrow.parquet.read_table(BytesIO(matrix_files["precision.parquet"]))
    assert table.column_names == NAMES
    assert same_bits(np.column_stack([c.to_numpy() for c in table.columns]), NUMBERS)


def test_csv_gives_every_bit_back(matrix_files: dict[str, bytes]) -> None:
    header, *rows = csv.reader(StringIO(matrix_files["precision.csv"].decode()))
    assert header == ["", "体重", "'=1+1", "a,b", "'-x"]
    assert [row[0] for row in rows] == header[1:]
    assert same_bits([[float(cell) for cell in row[1:]] for row in rows], NUMBERS)


def test_pandas_reads_the_csv_with_names_on_both_sides(matrix_files: dict[str, bytes]) -> None:
    frame = pd.read_csv(BytesIO(matrix_files["precision.csv"]), index_col=0)
    assert list(frame.index) == list(frame.columns)
    assert np.array_equal(frame.to_numpy(), NUMBERS)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_name_starts_a_formula(start: str) -> None:
    assert safe_name(start + "cmd") == "'" + start + "cmd"


def test_removing_one_apostrophe_gives_each_name_back() -> None:
    names = ["=a", "'=a", "''", "a", "'"]
    assert len({safe_name(name) for name in names}) == len(names)
    assert [safe_name(name).removeprefix("'") for name in names] == names


def test_negative_numbers_are_left_alone() -> None:
    assert csv_bytes(["x"], [[-1.5], [None], [True]]) == b'x\n-1.5\n""\ntrue\n'


def test_a_matrix_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        matrix_artefacts("precision", ["a"], np.array([[np.nan]]), Transform.NONE)

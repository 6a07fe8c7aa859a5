"""Files of completed tables."""

import csv
import json
from collections.abc import Iterator, Sequence
from io import BytesIO, StringIO

import numpy as np
import pandas as pd
import pyarrow.parquet

from service.results.outcome import Artefact
from worker.artefacts.exports.completed import (
    CompletedColumns,
    imputation_artefacts,
    multiple_imputation_artefacts,
)
from worker.artefacts.exports.csv_text import safe_name

NAMES = ["体重", "=1+1", "a,b", "-x"]
# Numbers whose digits are easily lost.
NUMBERS = np.array(
    [
        [1 / 3, -1e-300, 5e-324, 1.7976931348623157e308],
        [-1e-300, 0.1 + 0.2, -0.0, 2.0**53 + 2],
    ]
)


def contents(artefacts: list[Artefact]) -> dict[str, bytes]:
    return {artefact.name: artefact.content for artefact in artefacts}


def columns(names: Sequence[str], shape: tuple[int, ...]) -> CompletedColumns:
    return CompletedColumns(names, np.ones(shape, dtype=bool), None)


def test_imputations_list_exactly_the_cells_that_had_no_value() -> None:
    completed = np.array([[1.0, 2.5], [3.0, 0.1]])
    observed = np.array([[True, False], [False, True]])
    files = contents(imputation_artefacts(CompletedColumns(["a", "b"], observed, None), completed))
    document = json.loads(files["imputations.json"])
    assert document["values"] == completed.tolist()
    assert document["imputed"] == [
        {"row": 1, "column": "b", "value": 2.5},
        {"row": 2, "column": "a", "value": 3.0},
    ]
    assert files["imputations.csv"] == b"a,b\n1.0,2.5\n3.0,0.1\n"
    assert np.array_equal(np.load(BytesIO(files["imputations.npy"])), completed)
    table = pyarrow.parquet.read_table(BytesIO(files["imputations.parquet"]))
    assert table.to_pydict() == {"a": [1.0, 3.0], "b": [2.5, 0.1]}


def test_observed_cells_are_written_as_the_upload_has_them() -> None:
    def texts(names: Sequence[str]) -> Iterator[list[str]]:
        assert names == ["a", "b"]
        yield from [["9007199254740993", "NA"], ["", "0.10"]]

    completed = np.array([[9007199254740992.0, 2.5], [3.0, 0.1]])
    observed = np.array([[True, False], [False, True]])
    both = CompletedColumns(["a", "b"], observed, texts)
    one = contents(imputation_artefacts(both, completed))
    assert one["imputations.csv"] == b"a,b\n9007199254740993,2.5\n3.0,0.10\n"
    several = contents(multiple_imputation_artefacts(both, [completed, completed]))
    assert several["imputations-m.csv"].splitlines()[1:] == [
        b"1,1,9007199254740993,2.5",
        b"1,2,3.0,0.10",
        b"2,1,9007199254740993,2.5",
        b"2,2,3.0,0.10",
    ]


def test_completed_tables_stand_one_below_the_other_to_the_last_bit() -> None:
    tables = [NUMBERS, NUMBERS + 1]
    files = contents(multiple_imputation_artefacts(columns(NAMES, NUMBERS.shape), tables))
    assert list(files) == ["imputations-m.csv", "imputations-m.parquet"]
    header, *rows = csv.reader(StringIO(files["imputations-m.csv"].decode()))
    assert header == ["imputation", "row", *map(safe_name, NAMES)]
    parts = [(i, r) for i in (1, 2) for r in (1, 2)]
    assert [(int(row[0]), int(row[1])) for row in rows] == parts
    cells = np.array([[float(cell) for cell in row[2:]] for row in rows])
    assert cells.tobytes() == np.concatenate(tables).tobytes()
    frame = pd.read_parquet(BytesIO(files["imputations-m.parquet"]))
    assert list(frame.columns) == ["imputation", "row", *NAMES]
    assert list(zip(frame["imputation"], frame["row"], strict=True)) == parts
    assert np.ascontiguousarray(frame[NAMES]).tobytes() == np.concatenate(tables).tobytes()


def test_variables_keep_their_names_beside_those_of_table_and_row() -> None:
    names = ["row", "imputation", "row_", "x"]
    files = contents(multiple_imputation_artefacts(columns(names, NUMBERS.shape), [NUMBERS]))
    frame = pd.read_parquet(BytesIO(files["imputations-m.parquet"]))
    assert list(frame.columns) == ["imputation_", "row__", *names]

"""Names of columns, in every format alike."""

import pytest

DECOMPOSED = "cafe\u0301"
COMPOSED = "café"


def test_repeated_names_are_refused_with_their_positions(refuse):
    (item,) = refuse("k,na,k,k.1\n1,2,3,4\n").errors
    assert item.column == "k"
    assert "1, 3" in item.message


def test_a_column_may_be_called_like_a_missing_token(read):
    assert read("na,null\n1,2\n").table.column_names == ["na", "null"]


def test_nameless_columns_are_refused_with_their_positions(refuse):
    (item,) = refuse("ca,,mg,  \n1,2,3,9\n").errors
    assert "2, 4" in item.message


@pytest.mark.parametrize("start", [0, 1])
def test_a_nameless_first_column_that_counts_rows_is_excluded_and_reported(read, start):
    rows = "".join(f'"{start + i}",{5 + i / 8},1.5\n' for i in range(6))
    dataset = read(f'"","sepal","petal"\n{rows}')
    assert dataset.table.column_names == ["sepal", "petal"]
    assert [column.name for column in dataset.summary.columns] == ["sepal", "petal"]
    assert [change.code for change in dataset.summary.changes] == ["index-column-excluded"]


@pytest.mark.parametrize("first", [("1", "3"), ("2", "3"), ("1", ""), ("a", "b")])
def test_any_other_nameless_first_column_is_refused(refuse, first):
    problem = refuse(f",x,y\n{first[0]},2,3\n{first[1]},4,5\n")
    assert "position 1" in problem.errors[0].message


def test_cells_of_later_columns_are_counted_beside_an_excluded_index(read):
    dataset = read(",x,y\n1,<2, 3\n2,NA,5\n")
    columns = dataset.summary.columns
    assert [(c.n_censored, c.n_missing) for c in columns] == [(1, 1), (0, 0)]
    assert dataset.cells["column"].to_pylist() == ["x"]
    assert [c.columns for c in dataset.summary.changes if c.code == "cells-trimmed"] == [["y"]]


def test_a_named_column_that_counts_rows_is_warned_of(read):
    rows = "".join(f"{i},{i * i % 7}.5\n" for i in range(8))
    warnings = read(f"Unnamed: 0,x\n{rows}").summary.warnings
    assert [(w.code, w.columns) for w in warnings] == [("row-numbers", ["Unnamed: 0"])]


def test_names_are_composed_and_the_change_is_reported(read):
    dataset = read(f"{DECOMPOSED},水温,🌿 leaf\n1,2,3\n")
    assert dataset.table.column_names == [COMPOSED, "水温", "🌿 leaf"]
    assert [c.code for c in dataset.summary.changes] == ["names-normalised"]


@pytest.mark.parametrize(
    "content",
    [
        f"{COMPOSED},{DECOMPOSED},x\n1,2,3\n",
        f'[{{"{COMPOSED}": 1, "{DECOMPOSED}": 2}}]',
    ],
)
def test_names_that_look_the_same_are_repeated_names(refuse, content):
    assert refuse(content).errors[0].column == COMPOSED


def test_blanks_around_names_are_trimmed_and_reported(read):
    dataset = read("a, b\n1,2\n")
    assert dataset.table.column_names == ["a", "b"]
    assert [(c.code, c.columns) for c in dataset.summary.changes] == [("names-trimmed", ["b"])]


@pytest.mark.parametrize("name", ['"two\nlines"', "nul\x00", "n" * 61])
def test_unusable_names_are_refused(refuse, name):
    assert refuse(f"{name},b\n1,2\n").status == 422

"""What the cells of a CSV file become."""

import math

import pytest

MANY_SPELLINGS = """x,y,z
1.1,2.0,0.3
NA,2.1,0.4
1.3,N/A,0.5
1.4,2.3,.
-,2.4,0.6
1.6,n/a,0.7
1.7,NULL,0.8
NaN,2.7,?
1.9,missing,0.9
#N/A,2.9,1.0
2.1,<NA>,1.1
2.2,3.0,None
"""
DETECTION_LIMITS = """benzene,toluene,xylene
0.8,1.9,<0.5
<0.5,2.4,0.9
1.1,<1.0,0.7
0.9,2.2,<0.5
ND,1.8,1.2
< 0.5,2.0,0.8
1.4,2.7,1.0
0.7,1.5,<0.25
"""
SENTINELS = "so2,no2\n4.1,21.0\n-999,19.4\n3.8,-999.0\n5.0,22.3\n-999,23.1\n"


def test_every_declared_spelling_of_missing_is_a_gap(read):
    summary = read(MANY_SPELLINGS, na_values=[".", "-", "?", "missing"]).summary
    assert [column.n_missing for column in summary.columns] == [4, 5, 3]
    assert summary.n_rows == 12


def test_unknown_spellings_are_refused_with_column_row_line_text_and_count(refuse):
    problem = refuse(MANY_SPELLINGS)
    assert problem.status == 422
    places = {(item.cell, item.column, item.row, item.line, item.count) for item in problem.errors}
    assert places == {
        ("-", "x", 5, 6, 1),
        ("missing", "y", 9, 10, 1),
        (".", "z", 4, 5, 1),
        ("?", "z", 8, 9, 1),
    }


@pytest.mark.parametrize("code", ["-999", "-999.0", "-9.99e2"])
def test_a_number_that_means_missing_is_masked_however_it_is_written(read, code):
    dataset = read(SENTINELS, na_values=[code])
    assert [column.n_missing for column in dataset.summary.columns] == [2, 1]
    assert dataset.table["so2"].to_pylist() == [4.1, None, 3.8, 5.0, None]
    texts = [token.text for column in dataset.summary.columns for token in column.tokens]
    assert texts == ["-999", "-999.0"]


def test_cells_below_a_limit_are_kept_with_their_bounds(read):
    dataset = read(DETECTION_LIMITS)
    columns = dataset.summary.columns
    assert [column.n_censored for column in columns] == [2, 1, 3]
    assert [column.n_unknown for column in columns] == [1, 0, 0]
    assert [column.n_missing for column in columns] == [0, 0, 0]
    assert sorted(dataset.cells["upper"].drop_null().to_pylist()) == [0.25, 0.5, 0.5, 0.5, 0.5, 1.0]
    benzene = [cell for cell in dataset.cells.to_pylist() if cell["column"] == "benzene"]
    assert [(cell["row"], cell["text"], cell["lower"], cell["upper"]) for cell in benzene] == [
        (2, "<0.5", None, 0.5),
        (5, "ND", None, None),
        (6, "< 0.5", None, 0.5),
    ]
    assert {warning.code for warning in dataset.summary.warnings} >= {
        "censored-cells",
        "unknown-cells",
    }


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("<0.5", None, 0.5),
        ("<= 5e-1", None, 0.5),
        ("≤.5", None, 0.5),
        (">100", 100.0, None),
        ("≥ 100", 100.0, None),
        ("> 1E2", 100.0, None),
        ("n.d.", None, None),
        ("BDL", None, None),
        ("<LOD", None, None),
        ("< LOQ", None, None),
        ("not detected", None, None),
    ],
)
def test_a_bound_or_a_missed_limit_is_no_ordinary_gap(read, text, lower, upper):
    dataset = read(f"a,b\n{text},1\n2,3\n")
    assert dataset.table["a"].to_pylist() == [None, 2.0]
    assert dataset.cells.to_pylist() == [
        {"row": 1, "column": "a", "text": text, "lower": lower, "upper": upper}
    ]


def test_na_values_may_declare_a_detection_token_an_ordinary_gap(read):
    dataset = read("a,b\nND,1\n<0.5,2\n3,4\n", na_values=["nd", "<0.5"])
    assert dataset.summary.n_missing == 2
    assert dataset.cells.num_rows == 0


def test_limits_follow_the_decimal_mark(read):
    dataset = read("a;b\n<0,5;1,5\n2,25;3,5\n")
    assert dataset.cells["upper"].to_pylist() == [0.5]


def test_blank_cells_in_any_form_are_gaps_and_padding_is_no_text(read):
    dataset = read('a,b,c\n1.5,,2.0\n"",3.1,2.2\n 1.7 ,3.3,"  "\n1.9,\t,2.6\n2.1,3.7,2.8\n')
    assert dataset.summary.n_missing == 4
    assert dataset.table["a"].to_pylist() == [1.5, None, 1.7, 1.9, 2.1]
    (change,) = dataset.summary.changes
    assert (change.code, change.columns, change.count) == ("cells-trimmed", ["a"], 1)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("+1.5", 1.5),
        ("1E5", 1e5),
        ("3.0e+02", 300.0),
        ("1e-3", 0.001),
        (".5", 0.5),
        ("5.", 5.0),
        ("-0", -0.0),
        ("007", 7.0),
        ("4.9e-324", 4.9e-324),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("0.1000000000000000055511151231257827", 0.1),
    ],
)
def test_numbers_are_read_to_the_nearest_double(read, text, number):
    value = read(f"a,b\n{text},1\n").table["a"][0].as_py()
    assert value == number
    assert math.copysign(1, value) == math.copysign(1, number)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("inf", "infinite"),
        ("-Infinity", "infinite"),
        ("1e999", "too large"),
        ("−1.7", "minus"),
        ("12%", "percent"),
        ("0x1F", "hexadecimal"),
        ("1 234", "grouped"),
        ("1\u202f250", "grouped"),
        ("1'234", "grouped"),
        ("TRUE", "truth"),
        ("2031-02-11", "dates"),
        ("#DIV/0!", "error value"),
        ("1_000", ""),
        ("١٢", ""),
        ("1d5", ""),
        ("1\x00", ""),
    ],
)
def test_what_is_no_number_is_refused_and_said_why(refuse, text, advice):
    problem = refuse(f"a,b\n1,2\n{text},3\n", delimiter=",")
    (item,) = problem.errors
    assert (item.column, item.row, item.line) == ("a", 2, 3)
    assert advice in item.message


def test_a_refused_text_is_echoed_cut(refuse):
    (item,) = refuse(f"a,b\n{'x' * 5000},3\n").errors
    assert len(item.cell) == 80


def test_a_column_of_labels_is_refused_as_a_column(refuse):
    rows = "".join(f"sample {i},{i}.5\n" for i in range(50))
    (item,) = refuse(f"id,x\n{rows}").errors
    assert (item.column, item.count, item.row) == ("id", 50, 1)


def test_whole_numbers_beyond_exact_doubles_are_warned_of(read):
    dataset = read("a,b\n9007199254740993,1\n2,3\n")
    assert dataset.table["a"][0].as_py() == 9007199254740992.0
    assert [w.columns for w in dataset.summary.warnings if w.code == "large-integers"] == [["a"]]

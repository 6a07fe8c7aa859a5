"""Delimiters, decimal marks, headers, lines and quotes of CSV files."""

import pytest

COMMA_DECIMALS = "pH;Leitwert;Nitrat\n7,21;412,5;3,08\n6,95;398,0;\n7,05;;3,33\n"
PREAMBLE = (
    "Lab report 2031-02\nproject: demo\n\ntemp,oxygen,flow\ndegC,mg/L,m3/s\n"
    "12.1,8.9,1.1\n12.4,8.7,\n11.9,9.1,1.3\n"
)


@pytest.mark.parametrize("options", [{}, {"delimiter": ";", "decimal": ","}])
def test_semicolons_and_decimal_commas_are_read_and_stated(read, options):
    dataset = read(COMMA_DECIMALS, **options)
    assert dataset.table.to_pydict() == {
        "pH": [7.21, 6.95, 7.05],
        "Leitwert": [412.5, 398.0, None],
        "Nitrat": [3.08, None, 3.33],
    }
    dialect = dataset.summary.csv_dialect
    assert (dialect.delimiter, dialect.decimal) == (";", ",")
    assert (dialect.delimiter_detected, dialect.decimal_detected) == (not options, not options)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " ", ":"])
def test_each_delimiter_is_found(read, delimiter):
    lines = (("a", "b", "c"), ("1.5", "2", "3.25"), ("4", "5.125", "6"))
    dataset = read("\n".join(map(delimiter.join, lines)))
    assert dataset.table.column_names == ["a", "b", "c"]
    assert dataset.summary.csv_dialect.delimiter == delimiter


def test_a_wrongly_declared_delimiter_is_refused(refuse):
    assert refuse(COMMA_DECIMALS, delimiter=",").status == 422


def test_quoted_decimal_commas_between_commas_are_read(read):
    dataset = read('a,b\n"1,5","2,25"\n"3","4,0"\n')
    assert dataset.table["b"].to_pylist() == [2.25, 4.0]
    assert dataset.summary.csv_dialect.decimal == ","


@pytest.mark.parametrize(
    "content", ["a;b\n1,234;2,345\n", "a;b\n1.234;2.345\n", 'a,b\n"1,234",5\n']
)
def test_a_mark_that_may_group_digits_is_not_guessed(refuse, content):
    (item,) = refuse(content).errors
    assert item.parameter == "decimal"


@pytest.mark.parametrize(("decimal", "value"), [(".", 1.234), (",", None)])
def test_a_declared_decimal_mark_settles_grouped_digits(read, refuse, decimal, value):
    content = "a;b\n1.234;2.345\n"
    if value is None:
        assert refuse(content, decimal=decimal).errors[0].cell == "1.234"
    else:
        assert read(content, decimal=decimal).table["a"].to_pylist() == [value]


def test_the_separator_line_of_a_spreadsheet_is_followed_and_reported(read):
    summary = read("sep=;\na;b\n1,5;2\n").summary
    assert summary.csv_dialect.header_line == 2
    assert [change.code for change in summary.changes] == ["separator-line-skipped"]


def test_lines_above_the_header_are_refused_with_the_options_to_set(refuse):
    problem = refuse(PREAMBLE)
    assert "skip_rows=3" in problem.detail
    assert "units_row" in problem.detail


def test_a_units_row_is_refused_as_such(refuse):
    problem = refuse(PREAMBLE, skip_rows=3)
    assert "units_row=true" in problem.detail
    assert [item.line for item in problem.errors] == [5, 5, 5]


def test_skipped_lines_and_units_are_reported(read):
    summary = read(PREAMBLE, skip_rows=3, units_row=True).summary
    assert summary.n_rows == 3
    assert [column.unit for column in summary.columns] == ["degC", "mg/L", "m3/s"]
    assert [change.code for change in summary.changes] == ["lines-skipped", "units-row-skipped"]
    assert summary.csv_dialect.header_line == 4


def test_a_row_of_numbers_is_not_lost_as_units(refuse):
    assert "numbers only" in refuse("a,b\n1,2\n3,4\n", units_row=True).detail


def test_skipping_everything_is_refused(refuse):
    assert refuse("a,b\n1,2\n", skip_rows=9).errors[0].parameter == "skip_rows"


def test_a_header_without_the_name_of_the_row_names_is_refused(refuse):
    problem = refuse('"x" "y"\n"1" 1.5 2\n"2" 3 4\n')
    assert "first column" in problem.detail


@pytest.mark.parametrize("content", ["", "\n", "\r\n \r\n\t\r\n", "\ufeff"])
def test_an_empty_file_is_refused(refuse, content):
    assert refuse(content).detail == "The file is empty."


@pytest.mark.parametrize("content", ["a,b,c\n", "a,b,c"])
def test_a_header_without_rows_is_refused(refuse, content):
    assert "no rows" in refuse(content).detail


@pytest.mark.parametrize("content", ["1.5,2.5\n3.5,4.5\n", "0,-1\n2,3\n"])
def test_a_first_line_of_numbers_is_no_header(refuse, content):
    assert "header" in refuse(content).detail


def test_names_that_are_whole_numbers_are_warned_of(read):
    codes = [warning.code for warning in read("1990,1991\n3,4\n5,7\n").summary.warnings]
    assert codes == ["names-are-numbers"]
    assert not read("0,1\n3,4\n5,7\n").summary.warnings


def test_ragged_rows_are_refused_with_row_and_line(refuse):
    problem = refuse("a,b,c\n1,2,3\n\n4,5\n6,7,8\n9,10,11,12\n")
    places = [(item.row, item.line) for item in problem.errors]
    assert places == [(2, 4), (4, 6)]


def test_a_file_that_ends_within_a_row_is_refused(refuse):
    assert refuse("a,b,c\n1,2,3\n4,5").errors[0].line == 3


def test_blank_lines_are_ignored_and_lines_of_delimiters_are_empty_rows(read):
    summary = read("a,b,c\n1,2,3\n\n4,5,6\n,,\n7,8,9\n \n,,\n").summary
    assert (summary.n_rows, summary.n_empty_rows, summary.n_complete_rows) == (5, 2, 3)
    assert [(change.code, change.count) for change in summary.changes] == [
        ("blank-lines-ignored", 2)
    ]


def test_lines_are_told_across_blank_lines_and_multi_line_cells(refuse):
    problem = refuse('a,b\n\n1,"\n2"\n3,x\n')
    assert [(item.row, item.line, item.cell) for item in problem.errors] == [(2, 5, "x")]


@pytest.mark.parametrize(("content", "line"), [('a,b\n1,2\n"3,4\n', 3), ('a,b\n1,2\n"3"x,4\n', 3)])
def test_broken_quotes_are_refused_with_their_line(refuse, content, line):
    assert refuse(content).errors[0].line == line


def test_quotes_after_blanks_are_read_and_reported(read):
    dataset = read('"a", "b"\n1, "2"\n3, "4"\n')
    assert dataset.table.to_pydict() == {"a": [1.0, 3.0], "b": [2.0, 4.0]}
    assert "cells-trimmed" in {change.code for change in dataset.summary.changes}


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_line_end_is_read(read, newline):
    dataset = read(newline.join(["a,b", "1,2", "3,4", ""]))
    assert dataset.table.to_pydict() == {"a": [1.0, 3.0], "b": [2.0, 4.0]}


def test_one_column_is_read_and_warned_of(read):
    summary = read("only\n1.5\n2.5\n").summary
    assert [warning.code for warning in summary.warnings] == ["single-column"]


def test_too_many_cells_are_refused_while_reading(refuse, limits):
    row = "1,2\n"
    problem = refuse("a,b\n" + row * (limits.max_cells // 2 + 1))
    assert (problem.status, str(limits.max_cells) in problem.detail) == (413, True)


def test_too_many_columns_are_refused(refuse, limits):
    width = limits.max_columns + 1
    header = ",".join(f"v{i}" for i in range(width))
    assert refuse(f"{header}\n{','.join('1' * width)}\n").status == 413

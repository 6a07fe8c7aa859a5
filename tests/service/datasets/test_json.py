"""JSON in its three layouts."""

import json

import pytest

from service.http.problems import problem_document


def test_absent_keys_null_and_the_text_nan_are_gaps(read):
    dataset = read(
        '[{"a":1.0,"b":2.0},{"a":1.1},{"b":2.2,"a":null},{"a":1.3,"b":"NaN"},'
        '{"a":1.4,"b":2.5,"c":7},{"a":1.2,"b":2.1}]'
    )
    assert [column.n_missing for column in dataset.summary.columns] == [1, 2, 5]
    assert dataset.table["c"].to_pylist() == [None] * 4 + [7.0, None]
    changes = {change.code: change.columns for change in dataset.summary.changes}
    assert changes == {"keys-absent": ["b", "c"], "text-read-as-numbers": ["b"]}


@pytest.mark.parametrize(
    ("content", "layout"),
    [
        ('[{"a": 1, "b": 2.5}, {"a": null, "b": 4}]', "records"),
        ('{"a": [1, null], "b": [2.5, 4]}', "columns"),
        ('{"columns": ["a", "b"], "data": [[1, 2.5], [null, 4]]}', "split"),
    ],
)
def test_every_layout_is_read_and_stated(read, content, layout):
    dataset = read(content)
    assert dataset.table.to_pydict() == {"a": [1.0, None], "b": [2.5, 4.0]}
    assert dataset.summary.json_layout == layout


def test_columns_named_like_the_members_of_a_layout_are_columns(read):
    assert read('{"columns": [1, 2], "data": [3, 4]}').table.column_names == ["columns", "data"]


def test_the_index_of_a_data_frame_is_excluded_and_reported(read):
    dataset = read('{"columns": ["a", "b"], "index": [7, 9], "data": [[1, 2], [3, 4]]}')
    assert dataset.table.column_names == ["a", "b"]
    assert [change.code for change in dataset.summary.changes] == ["index-column-excluded"]


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_bare_constants_are_refused_with_their_position(refuse, constant):
    problem = refuse(f'[{{"a":1.0,"NaN \\" Infinity":2}},\n {{"a":{constant}}}]')
    assert "line 2, column 7" in problem.detail
    assert problem.errors[0].line == 2


def test_short_and_long_rows_are_refused_by_number(refuse):
    problem = refuse('{"columns": ["a", "b"], "data": [[1, 2], [1], [1, 2, 3]]}')
    assert [item.row for item in problem.errors] == [2, 3]


def test_columns_of_unequal_length_are_refused_with_their_lengths(refuse):
    problem = refuse('{"a": [1.0, 1.1, 1.2], "b": [2.0, 2.1]}')
    assert [(item.column, item.message) for item in problem.errors] == [
        ("a", "3 cells."),
        ("b", "2 cells."),
    ]


@pytest.mark.parametrize(
    "content",
    [
        '[{"a": 1, "a": 2}]',
        '{"a": [1], "a": [2]}',
        '{"columns": ["a", "a"], "data": [[1, 2]]}',
    ],
)
def test_repeated_keys_are_refused(refuse, content):
    assert refuse(content).errors[0].column == "a"


def test_whole_numbers_beyond_exact_doubles_are_warned_of(read):
    dataset = read(f'[{{"a": {2**53 + 1}, "b": 1}}, {{"a": {2**53}, "b": 2}}]')
    assert dataset.table["a"].to_pylist() == [2.0**53, 2.0**53]
    assert [w.columns for w in dataset.summary.warnings if w.code == "large-integers"] == [["a"]]


@pytest.mark.parametrize("number", ["1e999", "1" + "0" * 400, "-" + "9" * 5000])
def test_numbers_too_large_for_a_double_are_refused(refuse, number):
    assert refuse(f'[{{"a": {number}, "b": 1}}]').status == 422


def test_truth_values_are_read_as_1_and_0_and_reported(read):
    dataset = read('{"a": [true, false, null], "b": [1, 2, 3]}')
    assert dataset.table["a"].to_pylist() == [1.0, 0.0, None]
    assert [(c.code, c.columns) for c in dataset.summary.changes] == [
        ("booleans-read-as-numbers", ["a"])
    ]


def test_texts_are_read_like_csv_cells(read, refuse):
    dataset = read('{"a": ["<0.5", "1.5", 2], "b": [1, -999, "-999"]}', na_values=["-999"])
    assert dataset.table.to_pydict() == {"a": [None, 1.5, 2.0], "b": [1.0, None, None]}
    assert dataset.cells["upper"].to_pylist() == [0.5]
    assert refuse('{"a": ["x", 1]}').errors[0].row == 1


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{}",
        '{"a": []}',
        '{"columns": [], "data": []}',
        '{"columns": ["a"], "data": []}',
        "[[1, 2], [3, 4]]",
        '[{"a": 1}, 2]',
        '[{"a": 1}, {"a": {"b": 2}}]',
        '[{"a": 1}, {"a": [1]}]',
        '{"a": [[1], [2]]}',
        '{"a": [1, {"b": 2}]}',
        '{"a": [1], "b": 2}',
        '{"a": 1}',
        '{"a": {"0": 1}}',
        '{"a": [1, 2',
        '{"a": [1]}{"b": [2]}',
        '{"a": [1]} # comment',
        '[{"a": 1}\n{"a": 2}]',
        "[" * 100_000,
        '{"a":' * 100_000,
        "[{}]",
        '[{"": 1}]',
        '[{"\\ud800": 1, "b": 2}]',
    ],
)
def test_what_is_no_table_is_refused(refuse, content):
    assert refuse(content, format="json").status == 422


def test_half_a_surrogate_pair_is_refused_and_can_be_answered(refuse):
    for content in ('{"a": ["\\ud800", 1]}', '[{"\\ud800": 1, "\\ud800": 2}]', '{"\\ud800": [1]}'):
        problem = refuse(content)
        assert problem.errors
        assert problem_document(
            problem.code, problem.detail, errors=problem.errors
        ).model_dump_json()


def test_too_many_columns_are_refused_as_they_appear(refuse, limits):
    records = [{f"c{i}": 1} for i in range(limits.max_columns + 1)]
    assert refuse(json.dumps(records)).status == 413

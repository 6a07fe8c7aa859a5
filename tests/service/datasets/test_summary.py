"""Counts of a table and the warnings about it."""

import random
import sys

import pytest


def csv_of(columns: dict[str, list[object]]) -> str:
    """Return columns as CSV; None is a gap."""
    rows = zip(*columns.values(), strict=True)
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
    return "\n".join([",".join(columns), *lines]) + "\n"


def normal(seed: int, size: int, mean: float = 5.0) -> list[float]:
    source = random.Random(seed)
    return [round(source.gauss(mean, 1.0), 6) for _ in range(size)]


def warnings_of(read, columns: dict[str, list[object]]) -> dict[str, object]:
    return {warning.code: warning for warning in read(csv_of(columns)).summary.warnings}


def test_the_counts_describe_the_table(read):
    summary = read("a,b,c\n1,,0\n-2.5,NA,3\n,,\n4,<1,0\n").summary
    assert (summary.n_rows, summary.n_columns) == (4, 3)
    assert (summary.n_observed, summary.n_missing, summary.n_censored) == (6, 5, 1)
    assert (summary.n_complete_rows, summary.n_empty_rows) == (0, 1)
    a, b, c = summary.columns
    assert (a.minimum, a.maximum, a.n_negative, a.is_integer) == (-2.5, 4.0, 1, False)
    assert a.mean == pytest.approx(2.5 / 3, rel=1e-15)
    assert (b.minimum, b.mean, b.is_constant, b.is_integer) == (None, None, False, False)
    assert (c.n_zeros, c.is_integer, c.is_constant) == (2, True, False)
    assert [(token.text, token.kind, token.count) for token in b.tokens] == [
        ("", "missing", 2),
        ("NA", "missing", 1),
        ("<1", "censored", 1),
    ]


def test_the_mean_of_the_largest_doubles_is_finite(read):
    largest = sys.float_info.max
    (column, _) = read(csv_of({"a": [largest] * 3, "b": [1, 2, 3]})).summary.columns
    assert column.mean == largest


@pytest.mark.parametrize("width", [2, 62, 63, 64, 130])
def test_patterns_are_counted_at_any_width(read, width):
    holes = [None if i == width - 1 else 1 for i in range(width)]
    rows = [[1] * width, holes, holes[::-1], holes, [1] * width]
    columns = {f"v{j}": [row[j] for row in rows] for j in range(width)}
    assert read(csv_of(columns)).summary.n_patterns == 3


def test_pairs_that_share_no_row_are_listed(read):
    columns = {"a": [1, 2, None, None], "b": [None, None, 3, 4], "c": [5, 6, 7, 9]}
    dataset = read(csv_of(columns))
    assert dataset.summary.n_never_together == 1
    (pair,) = dataset.summary.never_together
    assert (pair.first, pair.second) == ("a", "b")
    assert warnings_of(read, columns)["never-together"].columns == ["a", "b"]


def test_unusable_columns_are_named(read):
    found = warnings_of(read, {"x": normal(0, 9), "empty": [None] * 9, "same": [3.0] * 8 + [None]})
    assert found["no-observed-value"].columns == ["empty"]
    assert found["constant"].columns == ["same"]
    assert "nearly-constant" not in found


def test_a_nearly_constant_column_is_named(read):
    rare = [0] * 118 + [1, 1]
    found = warnings_of(read, {"x": normal(0, 120), "rare": rare})
    assert found["nearly-constant"].columns == ["rare"]


def test_copies_of_a_column_are_named_gaps_included(read):
    x = [*normal(0, 20), None]
    columns = {"x": x, "y": [*normal(1, 20), 1.0], "copy": x, "almost": [*x[:-1], 0.5]}
    assert warnings_of(read, columns)["duplicate-columns"].columns == ["x", "copy"]


@pytest.mark.parametrize(
    ("code", "others"),
    [
        (-999, [4.1, 3.8, 5.0]),
        (-9, [0.0, 0.3, 20.0]),
        (999, [4.1, 3.8, 5.0]),
        (99, [1, 2, 5, 4]),
        (9.969209968386869e36, [1.5, 2.5, 9.0]),
    ],
)
def test_codes_far_outside_their_column_are_warned_of_with_counts(read, code, others):
    found = warnings_of(
        read, {"x": [*others, code, code], "y": [1, 5, 3, 4, 2, 7, 8][: len(others) + 2]}
    )
    assert found["sentinel-like"].columns == ["x"]
    assert "(2 times)" in found["sentinel-like"].message


@pytest.mark.parametrize("values", [[900.5, 950.0, 999, 870.25], [-12.5, -9, 3.5, 11.0]])
def test_codes_among_the_other_values_are_not_warned_of(read, values):
    assert "sentinel-like" not in warnings_of(read, {"x": values, "y": [1, 5, 3, 4]})


@pytest.mark.parametrize("mean", [0.0, 50.0])
def test_gross_outliers_are_named_with_their_row(read, mean):
    x = normal(0, 60, mean)
    x[17] = 800.0 * (1 + mean)
    found = warnings_of(read, {"x": x, "y": normal(1, 60, mean)})
    assert (found["outliers"].columns, found["outliers"].rows) == (["x"], [18])


def test_skewed_measurements_are_no_outliers(read):
    source = random.Random(0)
    x = [round(source.lognormvariate(0, 1.5), 6) for _ in range(500)]
    assert "outliers" not in warnings_of(read, {"x": x, "y": normal(1, 500)})


def test_counts_are_told_with_their_zeros_and_ties(read):
    source = random.Random(0)
    counts = [max(0, round(source.gauss(0, 2))) for _ in range(90)]
    found = warnings_of(read, {"sp0": counts, "y": normal(1, 90)})
    assert found["counts"].columns == ["sp0"]
    assert "zeros" in found["counts"].message
    assert "ties" in found["counts"].message


def test_many_zeros_among_measurements_are_told(read):
    x = [0.0] * 30 + normal(0, 60)
    assert warnings_of(read, {"x": x, "y": normal(1, 90)})["many-zeros"].columns == ["x"]


def test_negative_values_are_named_with_their_number(read):
    found = warnings_of(read, {"x": [1.5, -2.0, -0.5, 3], "y": [1, 5, 3, 4]})
    assert found["negative-values"].columns == ["x"]
    assert "x (2)" in found["negative-values"].message


def test_a_correlation_matrix_is_recognised(read):
    found = warnings_of(read, {"a": [1, 0.3, 0.1], "b": [0.3, 1, 0.2], "c": [0.1, 0.2, 1]})
    assert "looks-like-correlations" in found


def test_a_covariance_matrix_is_recognised_and_a_square_table_is_not(read):
    covariances = {"a": [2, 0.3, 0.1], "b": [0.3, 5, 0.2], "c": [0.1, 0.2, 1]}
    assert "looks-like-square-matrix" in warnings_of(read, covariances)
    table = {**covariances, "c": [0.7, 0.2, 1]}
    assert not set(warnings_of(read, table)) & {"looks-like-square-matrix"}


def test_an_ordinary_table_gives_no_warning(read):
    columns = {name: [*normal(seed, 40), None] for seed, name in enumerate("abc")}
    columns["a"][-1] = 1.0
    assert warnings_of(read, columns) == {}

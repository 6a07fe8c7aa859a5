"""Tables of every kind that estimators read: gaps stay gaps, what is no number is named."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import vnce_engine
from vnce_engine import TruncatedGaussianScoreMatching
from vnce_engine.data.observations import Observations
from vnce_engine.data.tables import as_numbers
from vnce_engine.runtime.checks import as_array

ESTIMATORS = [
    getattr(vnce_engine, name)
    for name in vnce_engine.__all__
    if hasattr(getattr(vnce_engine, name), "fit")
]
_MISSING = 3


def cells(n: int = 40) -> np.ndarray:
    """Return whole numbers (n, 3), one cell of the second column missing."""
    X = np.random.default_rng(0).integers(0, 9, size=(n, 3)).astype(float)
    X[_MISSING, 1] = np.nan
    return X


def frame_with(column: Any) -> pd.DataFrame:
    X = cells()
    return pd.DataFrame({"a": X[:, 0], "b": column, "c": X[:, 2]})


def with_gap(missing: Any, of: Callable[[float], Any] = float) -> list[Any]:
    return [missing if np.isnan(cell) else of(cell) for cell in cells()[:, 1]]


def masked() -> np.ma.MaskedArray:
    X = cells()
    return np.ma.MaskedArray(np.where(np.isnan(X), 7.0, X), mask=np.isnan(X))


SAME = {
    "masked array": masked,
    "masked whole numbers": lambda: masked().astype(np.int64),
    "masked objects": lambda: masked().astype(object),
    "list of masked rows": lambda: list(masked()),
    "rows of None": lambda: [[None if np.isnan(x) else x for x in row] for row in cells()],
    "array of objects": lambda: cells().astype(object),
    "nullable whole numbers": lambda: frame_with(pd.array(with_gap(pd.NA, int), dtype="Int64")),
    "nullable numbers": lambda: frame_with(pd.array(with_gap(pd.NA), dtype="Float64")),
    "numbers of pyarrow": lambda: frame_with(pd.array(with_gap(None), dtype="double[pyarrow]")),
    "whole numbers of pyarrow": lambda: frame_with(
        pd.array(with_gap(None, int), dtype="int64[pyarrow]")
    ),
    "decimals of pyarrow": lambda: frame_with(
        pd.array(
            with_gap(None, lambda cell: Decimal(int(cell))),
            dtype=pd.ArrowDtype(pa.decimal128(5, 2)),
        )
    ),
    "objects with NA": lambda: frame_with(np.array(with_gap(pd.NA), dtype=object)),
    "decimals": lambda: frame_with(np.array(with_gap(None, lambda x: Decimal(int(x))), object)),
    "table of pyarrow": lambda: pa.table(
        {"a": cells()[:, 0], "b": with_gap(None, int), "c": cells()[:, 2]}
    ),
}


@pytest.mark.parametrize("kind", list(SAME))
def test_every_kind_of_table_is_the_same_table(kind: str) -> None:
    read = np.asarray(as_numbers(SAME[kind](), "E"), dtype=np.float64)
    np.testing.assert_array_equal(read, cells())


def test_nullable_truth_values_are_zeros_ones_and_gaps() -> None:
    column = pd.array([True, pd.NA, False] * 10, dtype="boolean")
    read = np.asarray(as_numbers(pd.DataFrame({"a": np.arange(30.0), "b": column}), "E"))
    np.testing.assert_array_equal(read[:3, 1], [1.0, np.nan, 0.0])


def test_truth_values_beside_numbers_are_numbers() -> None:
    frame = pd.DataFrame({"a": [0.5, 1.5], "b": [True, False]})
    np.testing.assert_array_equal(as_numbers(frame, "E"), [[0.5, 1.0], [1.5, 0.0]])


@pytest.mark.slow
def test_a_fit_of_a_masked_table_is_that_of_its_gaps() -> None:
    X = cells(200)
    hidden = np.ma.MaskedArray(np.where(np.isnan(X), 1e6, X), mask=np.isnan(X))
    model, same = (
        TruncatedGaussianScoreMatching(max_iter=3, random_state=0).fit(t) for t in (X, hidden)
    )
    np.testing.assert_array_equal(same.precision_, model.precision_)
    np.testing.assert_array_equal(same.impute(hidden), model.impute(X))


def test_what_is_masked_is_not_observed_whatever_it_holds() -> None:
    X = np.ma.MaskedArray([[1.0, np.inf], [2.0, 3.0]], mask=[[False, True], [False, False]])
    assert Observations.from_array(X).observed.tolist() == [[True, False], [True, True]]
    assert np.isnan(as_array("X", X)[0, 1])


REFUSED = {
    "text": (["0.5"] * 40, r"b \(text '0.5' in row 0\)"),
    "strings": (pd.array(["x"] * 40, dtype="string"), r"b \(text 'x' in row 0\)"),
    "strings of pyarrow": (pd.array(["x"] * 40, dtype="string[pyarrow]"), r"b \(text 'x' in row"),
    "one text among numbers": ([1.0] * 39 + ["ND"], r"b \(text 'ND' in row 39\)"),
    "dates": (pd.date_range("2020", periods=40), r"b \(datetime64\[..\]\)"),
    "dates of a zone": (pd.date_range("2020", periods=40, tz="UTC"), r"b \(datetime64\[.., UTC"),
    "dates of pyarrow": (
        pd.array(pd.date_range("2020", periods=40), dtype="timestamp[ns][pyarrow]"),
        r"b \(timestamp\[ns\]\[pyarrow\]\)",
    ),
    "spans of time": (pd.to_timedelta(np.arange(40), unit="D"), r"b \(timedelta64\[.+\]\)"),
    "periods": (pd.period_range("2020", periods=40, freq="D"), r"b \(row 0: .*'Period'"),
    "categories": (pd.Categorical(np.arange(40) % 3), r"b \(category\)"),
    "complex numbers": (np.full(40, 1j), r"b \(complex numbers\)"),
    "objects": ([{"foo": "bar"}] * 40, r"b \(row 0: .* must be a string or a real number"),
}


@pytest.mark.parametrize("kind", list(REFUSED))
def test_columns_that_hold_no_numbers_are_named_in_a_type_error(kind: str) -> None:
    column, said = REFUSED[kind]
    with pytest.raises(TypeError, match=f"no numbers in data passed to X in E: {said}"):
        as_numbers(frame_with(column), "E")


def test_dates_alone_are_refused_though_numpy_makes_numbers_of_them() -> None:
    dates = np.arange(40).astype("datetime64[D]").reshape(20, 2)
    with pytest.raises(TypeError, match=r"column 0 \(datetime64\[D\]\), column 1"):
        as_numbers(dates, "E")


def test_only_the_columns_of_text_are_named_in_a_list_of_rows() -> None:
    with pytest.raises(TypeError, match=r"in E: column 1 \(text 'a' in row 0\)\. Convert"):
        as_numbers([[1.0, "a"], [2.0, "b"]], "E")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_names_its_columns_of_dates(estimator: Any) -> None:
    frame = frame_with(pd.date_range("2020", periods=40)).rename(columns={"b": "sampled_at"})
    with pytest.raises(TypeError, match=rf"X in {estimator.__name__}: sampled_at \(datetime64"):
        estimator().fit(frame)


def test_numbers_beyond_all_floating_point_ones_are_refused() -> None:
    frame = frame_with(np.array([10**400] * 40, dtype=object))
    with pytest.raises(ValueError, match="X must hold floating-point numbers"):
        TruncatedGaussianScoreMatching().fit(frame)

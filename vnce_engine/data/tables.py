"""Tables of all kinds as floating-point numbers, NaN where nothing was observed.

Arrays, masked arrays, lists of rows, and data frames of any library: those have columns of several
types, and are told by their attributes, so that none of those libraries is needed here.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnce_engine.runtime.checks import filled, listed, shown

FloatArray = NDArray[np.float64]

# Kinds of NumPy types that hold numbers: truth values, whole numbers, floating-point numbers.
_NUMBERS = "biuf"
_TIMES = "mM"
_TEXTS = "SU"


def as_numbers(X: ArrayLike, owner: str) -> ArrayLike:
    """Return X, or what its cells are as numbers where NumPy would misread them.

    Masked cells, None, and the missing values of data frames become NaN. Raises `TypeError` naming
    the columns whose cells are no numbers (text, dates, categories), and `OverflowError` for whole
    numbers beyond all floating-point ones. `owner` says whose X it is. Shapes are not judged, nor
    what has no columns, nor arrays of complex numbers.
    """
    if _is_frame(X):
        return _frame_as_numbers(X, owner)
    array = _as_array(X)
    if array.dtype.kind in _NUMBERS:
        return array
    if array.ndim != 2 or array.dtype.kind == "c":
        return X
    names = _names(X, array.shape[1])
    columns = ((name, array[:, j]) for j, name in enumerate(names))
    return np.column_stack(_columns_as_numbers(columns, owner))


def _frame_as_numbers(frame: Any, owner: str) -> ArrayLike:  # Any: a data frame of some library
    types = list(frame.dtypes)
    if all(isinstance(dtype, np.dtype) and dtype.kind in _NUMBERS for dtype in types):
        return np.asarray(frame, dtype=np.float64)
    names = _names(frame, len(types))
    columns = ((name, frame.iloc[:, j]) for j, name in enumerate(names))
    return np.column_stack(_columns_as_numbers(columns, owner))


def take_rows(X: Any, rows: NDArray[np.intp]) -> ArrayLike:  # Any: a table of some library
    """Return some rows of a table, a data frame's as one, so that its columns keep their names."""
    if _is_frame(X):
        taken: ArrayLike = X.iloc[rows]
    elif hasattr(X, "column_names"):  # pyarrow's
        taken = X.take(rows)
    else:
        taken = _as_array(X)[rows]
    return taken


def known_rows(table: FloatArray) -> FloatArray:
    """Return the rows of a table (n, d) with something observed."""
    return table[is_known(table)]


def is_known(table: FloatArray) -> NDArray[np.bool_]:
    """Return bool (n,): the rows of a table (n, d) with something observed."""
    return np.asarray(~np.isnan(table).all(axis=1))


def _is_frame(X: object) -> bool:
    """Return whether X has types of its own for its columns, as frames of pandas have."""
    return hasattr(X, "dtypes") and hasattr(X.dtypes, "__array__") and hasattr(X, "iloc")


def _as_array(X: ArrayLike) -> NDArray[Any]:
    """Return X as an array, masked cells as NaN."""
    if isinstance(X, Sequence) and any(isinstance(row, np.ma.MaskedArray) for row in X):
        X = np.ma.stack([np.ma.asarray(row) for row in X])
    if isinstance(X, np.ma.MaskedArray):
        return filled(X)
    try:
        array = np.asarray(X)
    except ValueError:  # rows of different lengths
        return np.empty(0, dtype=object)
    # NumPy makes text of all cells of a list if one of them is.
    is_text_by_mixture = array.dtype.kind in _TEXTS and not hasattr(X, "dtype")
    return np.array(X, dtype=object) if is_text_by_mixture else array


def _names(X: object, width: int) -> list[str]:
    """Return the names of columns, where all are texts, else their positions in words."""
    for attribute in ("columns", "column_names"):
        names = getattr(X, attribute, ())
        if len(names) == width and all(isinstance(name, str) for name in names):
            return list(names)
    return [f"column {j}" for j in range(width)]


def _columns_as_numbers(columns: Iterator[tuple[str, Any]], owner: str) -> list[FloatArray]:
    """Return each column of numbers; raise naming all others."""
    numbers, refused = [], []
    for name, column in columns:
        try:
            numbers.append(_column_as_numbers(column))
        except TypeError as error:
            refused.append(f"{name} ({error})")
    if refused:
        raise TypeError(
            f"Cells that are no numbers in data passed to X in {owner}: {listed(refused)}. Convert "
            "such columns, or leave them out."
        )
    return numbers


def _column_as_numbers(column: Any) -> FloatArray:  # Any: an array, or a frame's column
    """Return a column as numbers; raise `TypeError` saying what it holds instead."""
    dtype = column.dtype
    kind = getattr(dtype, "kind", "O")
    if kind in _TIMES or hasattr(dtype, "categories"):
        raise TypeError(str(dtype))
    if kind == "c":
        raise TypeError("complex numbers")
    if kind not in _NUMBERS:
        cells = np.asarray(column, dtype=object)
        return np.array([_as_number(cell, i) for i, cell in enumerate(cells)], dtype=np.float64)
    if hasattr(column, "to_numpy"):
        numbers: FloatArray = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return numbers
    return np.asarray(column, dtype=np.float64)


def _as_number(cell: Any, row: int) -> float:
    """Return a cell of unknown type as a number, NaN if it says that it is missing."""
    if cell is None or cell is np.ma.masked:
        return np.nan
    if isinstance(cell, str | bytes):
        raise TypeError(f"text {shown(cell)} in row {row}")
    if isinstance(cell, np.datetime64 | np.timedelta64):
        raise TypeError(f"{cell.dtype} in row {row}")
    try:
        return float(cell)
    except TypeError as error:
        # A missing value of a data frame is so also when it is compared.
        if (cell != cell) is cell:
            return np.nan
        raise TypeError(f"row {row}: {error}") from error

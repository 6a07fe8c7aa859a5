"""What is remarkable about single columns of a table."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from service.datasets.profile.sentinels import sentinels, without
from service.datasets.schemas import ColumnSummary, DatasetSummary, DatasetWarning
from service.datasets.vocabulary import WarningCode
from service.http.words import counted

MOST_ROWS = 20
_NEARLY_CONSTANT_SHARE = 0.95
_COUNT_ZERO_SHARE = 0.1
_COUNT_TIE_SHARE = 0.5
_MANY_ZEROS_SHARE = 0.2
# Robust spreads from the median beyond which a value is called an outlier. Columns without
# negative values are judged by their logarithm: skewed measurements reach hundreds of spreads on
# their own scale and fewer than ten on the logarithm's.
_OUTLIER_SPREADS = 30.0
_OUTLIER_LOG_SPREADS = 15.0
_OUTLIER_MIN_VALUES = 10
# Makes the median absolute deviation of a normal variable its standard deviation: 1/Φ⁻¹(3/4).
_MAD_TO_SD = 1.4826
_ROW_NUMBERS_MIN_ROWS = 6


def column_warnings(summary: DatasetSummary, arrays: list[pa.Array]) -> Iterator[DatasetWarning]:
    """Yield the warnings about single columns; `arrays` holds their values."""
    columns = list(zip(summary.columns, arrays, strict=True))
    yield from _unusable(summary)
    yield from _nearly_constant(columns)
    yield from _negative(summary)
    yield from _zeros(columns)
    yield from _row_numbers(columns)
    for column, values in columns:
        found = sentinels(values)
        if found:
            yield _sentinel_warning(column, found)
        yield from _outliers(column, without(values, found))


def make(
    code: WarningCode, message: str, columns: list[str], rows: list[int] | None = None
) -> DatasetWarning:
    """Return a warning."""
    return DatasetWarning(code=code, message=message, columns=columns, rows=rows or [])


def _unusable(summary: DatasetSummary) -> Iterator[DatasetWarning]:
    empty = [column.name for column in summary.columns if not column.n_observed]
    constant = [column.name for column in summary.columns if column.is_constant]
    if empty:
        message = "No value is observed; a model of this column cannot be estimated."
        yield make(WarningCode.NO_OBSERVED_VALUE, message, empty)
    if constant:
        message = "All observed values are the same; a model of this column cannot be estimated."
        yield make(WarningCode.CONSTANT, message, constant)


def _nearly_constant(columns: list[tuple[ColumnSummary, pa.Array]]) -> Iterator[DatasetWarning]:
    shares = {}
    for column, values in columns:
        if column.n_observed and not column.is_constant:
            share = pc.mode(values, 1)[0]["count"].as_py() / column.n_observed
            if share >= _NEARLY_CONSTANT_SHARE:
                shares[column.name] = share
    if shares:
        listed = ", ".join(f"{name} ({share:.1%})" for name, share in shares.items())
        message = (
            f"One value makes up nearly all of the column, which may be constant in a "
            f"resample or fold: {listed}."
        )
        yield make(WarningCode.NEARLY_CONSTANT, message, list(shares))


def _negative(summary: DatasetSummary) -> Iterator[DatasetWarning]:
    found = [column for column in summary.columns if column.n_negative]
    if found:
        listed = ", ".join(f"{column.name} ({column.n_negative})" for column in found)
        message = f"Values below 0, which models of non-negative data refuse: {listed}."
        yield make(WarningCode.NEGATIVE_VALUES, message, [column.name for column in found])


def _zeros(columns: list[tuple[ColumnSummary, pa.Array]]) -> Iterator[DatasetWarning]:
    counts, zeros = [], []
    for column, values in columns:
        if not column.n_observed or column.n_negative or column.is_constant:
            continue
        share = column.n_zeros / column.n_observed
        described = f"{column.name} ({share:.0%} zeros"
        ties = 1 - pc.count_distinct(values).as_py() / column.n_observed
        if column.is_integer and share >= _COUNT_ZERO_SHARE and ties >= _COUNT_TIE_SHARE:
            counts.append((column.name, f"{described}, {ties:.0%} ties)"))
        elif not column.is_integer and share >= _MANY_ZEROS_SHARE:
            zeros.append((column.name, f"{described})"))
    if counts:
        names, listed = zip(*counts, strict=True)
        message = (
            f"Columns that look like counts: {', '.join(listed)}. The model is one of continuous "
            'values; `transform="sqrt"` or `"log1p"` brings counts closer to it.'
        )
        yield make(WarningCode.COUNTS, message, list(names))
    if zeros:
        names, listed = zip(*zeros, strict=True)
        message = (
            f"Many exact zeros, which a continuous model does not expect: {', '.join(listed)}."
        )
        yield make(WarningCode.MANY_ZEROS, message, list(names))


def counts_rows(column: pa.Array) -> bool:
    """Whether a column holds 0, 1, 2, ... or 1, 2, 3, ..."""
    start = column[0].as_py()
    if start not in (0.0, 1.0) or column[-1].as_py() != start + len(column) - 1:
        return False
    return bool(column.equals(pa.array(range(int(start), int(start) + len(column)), pa.float64())))


def _row_numbers(columns: list[tuple[ColumnSummary, pa.Array]]) -> Iterator[DatasetWarning]:
    found = [
        column.name
        for column, values in columns
        if len(values) >= _ROW_NUMBERS_MIN_ROWS and counts_rows(values)
    ]
    if found:
        message = "The column is a row number, not a measurement; leave it out of the job."
        yield make(WarningCode.ROW_NUMBERS, message, found)


def _sentinel_warning(column: ColumnSummary, found: dict[float, int]) -> DatasetWarning:
    listed = ", ".join(f"{value:.17g} ({count} times)" for value, count in found.items())
    message = (
        f"{listed} lies far outside the other values of {column.name} and may stand for missing; "
        "if it does, upload again with `na_values`."
    )
    return make(WarningCode.SENTINEL_LIKE, message, [column.name])


def _outliers(column: ColumnSummary, values: pa.Array) -> Iterator[DatasetWarning]:
    if pc.any(pc.less(values, 0.0)).as_py():
        threshold, scale = _OUTLIER_SPREADS, "spreads"
    else:
        positive = pc.if_else(pc.greater(values, 0.0), values, pa.scalar(None, pa.float64()))
        values = pc.ln(positive)
        threshold, scale = _OUTLIER_LOG_SPREADS, "spreads of the logarithm"
    if len(values) - values.null_count < _OUTLIER_MIN_VALUES:
        return
    distance = pc.abs(pc.subtract(values, pc.quantile(values, 0.5)[0]))
    spread = _MAD_TO_SD * pc.quantile(distance, 0.5)[0].as_py()
    largest = pc.max(distance).as_py()
    if spread and largest > threshold * spread:
        is_outlier = pc.greater(distance, threshold * spread)
        rows = [position + 1 for position in pc.indices_nonzero(is_outlier).to_pylist()]
        message = (
            f"{counted(len(rows), 'outlier')} in {column.name}, up to {largest / spread:.0f} "
            f"robust {scale} from the median; one such row can make an edge by itself."
        )
        yield make(WarningCode.OUTLIERS, message, [column.name], rows[:MOST_ROWS])

"""What is remarkable about a table as a whole, or about several of its columns together."""

from collections import defaultdict
from collections.abc import Iterator

import pyarrow as pa

from service.datasets.profile.column_warnings import make
from service.datasets.schemas import DatasetSummary, DatasetWarning
from service.datasets.vocabulary import WarningCode
from service.http.words import counted

# Rounding of a matrix that was written with few digits and read again.
_SYMMETRY_TOLERANCE = 1e-12
_MIN_MATRIX_WIDTH = 3


def table_warnings(
    summary: DatasetSummary,
    arrays: list[pa.Array],
    *,
    large_integers: list[str],
    encoding_doubtful: bool,
) -> Iterator[DatasetWarning]:
    """Yield the warnings about the table; `arrays` holds its columns."""
    yield from _gaps(summary)
    for names in _duplicates(summary, arrays):
        message = (
            f"The columns {', '.join(names)} are the same in every row, missing cells included."
        )
        yield make(WarningCode.DUPLICATE_COLUMNS, message, names)
    yield from _square_matrix(summary, arrays)
    if summary.n_columns == 1:
        message = "A network needs at least two variables."
        yield make(WarningCode.SINGLE_COLUMN, message, [summary.columns[0].name])
    names = [column.name for column in summary.columns]
    if all(name.isdigit() for name in names) and not _enumerates(names):
        message = (
            "All names are numbers. If the file has no line of names, its first row was taken "
            "for one; add such a line."
        )
        yield make(WarningCode.NAMES_ARE_NUMBERS, message, names)
    if large_integers:
        message = "Whole numbers beyond 2^53 are held as the nearest double."
        yield make(WarningCode.LARGE_INTEGERS, message, large_integers)
    if encoding_doubtful:
        message = (
            f"The file was read as {summary.encoding}, as declared, and is valid UTF-8 too; check "
            "the names, and leave `encoding` out if they are garbled."
        )
        yield make(WarningCode.ENCODING_DOUBTFUL, message, [])


def _gaps(summary: DatasetSummary) -> Iterator[DatasetWarning]:
    censored = [column for column in summary.columns if column.n_censored]
    unknown = [column for column in summary.columns if column.n_unknown]
    if censored:
        listed = ", ".join(f"{column.name} ({column.n_censored})" for column in censored)
        message = (
            f"Censored cells with a known limit: {listed}. They are missing because of their "
            "values themselves; a job must say how to treat them (`censored`)."
        )
        yield make(WarningCode.CENSORED_CELLS, message, [column.name for column in censored])
    if unknown:
        listed = ", ".join(f"{column.name} ({column.n_unknown})" for column in unknown)
        message = (
            f"Cells beyond an unstated limit, such as ND: {listed}. They are missing because of "
            "the values themselves; a job must say how to treat them (`censored`)."
        )
        yield make(WarningCode.UNKNOWN_CELLS, message, [column.name for column in unknown])
    if summary.n_empty_rows:
        rows = counted(summary.n_empty_rows, "row holds", "rows hold")
        message = f"{rows} no number, and nothing is learned from that."
        yield make(WarningCode.EMPTY_ROWS, message, [])
    if summary.n_never_together:
        pairs = ", ".join(f"{pair.first}-{pair.second}" for pair in summary.never_together[:5])
        message = (
            f"{counted(summary.n_never_together, 'pair')} of columns without a row that has both "
            f"({pairs}{', …' if summary.n_never_together > 5 else ''}): the data say nothing "
            "about their edges directly."
        )
        names = {pair.first for pair in summary.never_together}
        names |= {pair.second for pair in summary.never_together}
        concerned = [column.name for column in summary.columns if column.name in names]
        yield make(WarningCode.NEVER_TOGETHER, message, concerned)


def _duplicates(summary: DatasetSummary, arrays: list[pa.Array]) -> list[list[str]]:
    """Return the groups of columns that are equal cell by cell."""
    alike = defaultdict(list)
    for column, values in zip(summary.columns, arrays, strict=True):
        if column.n_observed and not column.is_constant:
            key = (column.n_observed, column.minimum, column.maximum, column.mean)
            alike[key].append((column.name, values))
    groups = []
    for members in alike.values():
        while len(members) > 1:
            values = members[0][1]
            same = [name for name, others in members if others.equals(values)]
            members = [member for member in members if member[0] not in same]
            if len(same) > 1:
                groups.append(same)
    return groups


def _square_matrix(summary: DatasetSummary, arrays: list[pa.Array]) -> Iterator[DatasetWarning]:
    width = summary.n_columns
    is_square = summary.n_rows == width >= _MIN_MATRIX_WIDTH
    if not is_square or summary.n_complete_rows < summary.n_rows:
        return
    columns = [values.to_pylist() for values in arrays]
    for i in range(width):
        for j in range(i):
            above, below = columns[i][j], columns[j][i]
            if abs(above - below) > _SYMMETRY_TOLERANCE * max(abs(above), abs(below)):
                return
    diagonal = [columns[i][i] for i in range(width)]
    if all(value == 1 for value in diagonal) and all(abs(x) <= 1 for c in columns for x in c):
        message = "This looks like a correlation matrix; the rows of the data are expected."
        yield make(WarningCode.LOOKS_LIKE_CORRELATIONS, message, [])
    else:
        message = (
            "The table is square and symmetric, like a covariance or distance matrix; the rows of "
            "the data are expected."
        )
        yield make(WarningCode.LOOKS_LIKE_SQUARE_MATRIX, message, [])


def _enumerates(names: list[str]) -> bool:
    return names in ([str(i + start) for i in range(len(names))] for start in (0, 1))

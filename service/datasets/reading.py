"""Bytes to a table of numbers with everything that was not simply a number accounted for."""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, assert_never

import pyarrow as pa

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.profile.column_warnings import counts_rows
from service.datasets.profile.summary import summarise
from service.datasets.readers import sniffing
from service.datasets.readers.columnar import read_arrow, read_parquet
from service.datasets.readers.csv import read_csv, read_texts
from service.datasets.readers.json import read_json
from service.datasets.readers.names import check_names, clean_name, name_changes
from service.datasets.readers.parsed import ParsedTable
from service.datasets.readers.refusals import (
    refuse_cells,
    refuse_units_row,
    shorten,
    unreadable,
)
from service.datasets.schemas import Change, DatasetSummary
from service.datasets.vocabulary import ChangeCode, DatasetFormat, Encoding, RequestedFormat
from service.http.problems import ProblemItem
from service.http.words import counted


@dataclass(frozen=True)
class ReadDataset:
    """A table as jobs see it.

    `table` holds one double column a variable, null where no number is known; `cells` holds the
    censored and unknown ones among these nulls (`cells.CELL_SCHEMA`). `labels` has the text of each
    number in columns of labels, by name.
    """

    format: DatasetFormat
    table: pa.Table
    cells: pa.Table
    summary: DatasetSummary
    labels: Mapping[str, Mapping[int, str]]


def read_dataset(
    content: bytes | BinaryIO, options: ReadOptions, limits: ReadLimits
) -> ReadDataset:
    """Return the table that `content` holds; nothing is guessed, nothing changed in silence.

    A file must be seekable and is read from its beginning. Raises `ProblemError`, with column,
    row and cell where there are any, for what cannot be read or is larger than allowed.
    """
    file = io.BytesIO(content) if isinstance(content, bytes) else content
    parsed = _parse(file, options, limits)
    first = _index_column(parsed)
    names = check_names(parsed.names[first:], limits, first_position=first + 1)
    _refuse_unknown_labels(options, names)
    _refuse_cells(parsed, [""] * first + names, has_units=options.units_row)
    labels = {
        names[column - first]: {number: text for text, number in numbers.items()}
        for column, numbers in parsed.ledger.labels.items()
    }
    columns = [column.combine_chunks() for column in parsed.columns[first:]]
    parsed.columns.clear()  # they hold as much memory again
    changes = [*parsed.changes, *_index_changes(first), *name_changes(parsed.names[first:], names)]
    changes += _label_changes(parsed, [""] * first + names)
    table = pa.table(columns, names)
    return ReadDataset(
        format=parsed.format,
        table=table,
        cells=parsed.ledger.cells([""] * first + names),
        summary=summarise(table, parsed, first, changes),
        labels=labels,
    )


def read_csv_texts(
    content: bytes, summary: DatasetSummary, names: Sequence[str]
) -> Iterator[list[str]]:
    """Yield the cells of some variables row by row, as the upload that gave `summary` has them.

    A double may hold a number's digits only in part, or be written in other ways.
    """
    dialect = summary.csv_dialect
    assert dialect is not None
    codes = {change.code for change in summary.changes}
    # Not validated: more lines may have been skipped, blank ones too, than can be asked for.
    options = ReadOptions.model_construct(
        format=RequestedFormat.CSV,
        delimiter=dialect.delimiter,
        decimal=dialect.decimal,
        encoding=None if summary.encoding_detected else Encoding(str(summary.encoding)),
        skip_rows=dialect.header_line - 1,
        units_row=ChangeCode.UNITS_ROW_SKIPPED in codes,
    )
    first = int(ChangeCode.INDEX_COLUMN_EXCLUDED in codes)
    places = {column.name: first + i for i, column in enumerate(summary.columns)}
    chosen = [places[name] for name in names]
    for cells in read_texts(io.BytesIO(content), options):
        yield [cells[place] for place in chosen]


def _parse(file: BinaryIO, options: ReadOptions, limits: ReadLimits) -> ParsedTable:
    dataset_format = sniffing.determine(file, options)
    match dataset_format:
        case DatasetFormat.CSV:
            parsed = read_csv(file, options, limits)
        case DatasetFormat.JSON:
            parsed = read_json(file, options, limits)
        case DatasetFormat.PARQUET:
            parsed = read_parquet(file, options, limits)
        case DatasetFormat.ARROW:
            parsed = read_arrow(file, options, limits)
        case _:
            assert_never(dataset_format)
    if not parsed.columns:
        raise unreadable("The table has no columns.")
    if not len(parsed.columns[0]):
        raise unreadable("The table has names and no rows.")
    return parsed


def _index_column(parsed: ParsedTable) -> int:
    """Return 1 if the first column is nameless and counts the rows from 0 or 1, else 0."""
    if parsed.names[0].strip() or len(parsed.names) == 1:
        return 0
    return int(counts_rows(parsed.columns[0].combine_chunks()))


def _index_changes(num_excluded: int) -> list[Change]:
    if not num_excluded:
        return []
    return [
        Change(
            code=ChangeCode.INDEX_COLUMN_EXCLUDED,
            message="The first column has no name and counts the rows: it is no variable.",
            columns=[],
            count=1,
        )
    ]


def _refuse_unknown_labels(options: ReadOptions, names: list[str]) -> None:
    lacking = [name for name in options.labels if clean_name(name) not in names]
    if lacking:
        listed = ", ".join(map(shorten, lacking))
        items = [
            ProblemItem(message="No column.", parameter="labels", column=name) for name in lacking
        ]
        raise unreadable(f"The table has no column {listed}, whose labels were asked for.", *items)


def _label_changes(parsed: ParsedTable, names: list[str]) -> list[Change]:
    return [
        Change(
            code=ChangeCode.LABELS_NUMBERED,
            message=f"{counted(len(numbers), 'label')} of {shorten(names[column])} became whole "
            "numbers, equal labels the same one.",
            columns=[names[column]],
            count=len(numbers),
        )
        for column, numbers in parsed.ledger.labels.items()
        if numbers
    ]


def _refuse_cells(parsed: ParsedTable, names: list[str], *, has_units: bool) -> None:
    ledger = parsed.ledger
    if not ledger.num_refused:
        return
    refused = list(ledger.refused.values())
    lines = {cell.row: parsed.lines.line(cell.row) for cell in refused} if parsed.lines else {}
    only_row_1 = len(refused) == ledger.num_refused and all(cell.row == 1 for cell in refused)
    if (
        only_row_1
        and lines
        and not has_units
        and len(parsed.columns[0]) > 1
        and not any(column[0].is_valid for column in parsed.columns)
    ):
        refuse_units_row(refused, names, lines[1])
    refuse_cells(ledger, names, lines)

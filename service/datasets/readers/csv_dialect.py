"""How a CSV file is written: delimiter, decimal mark, lines above the header."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from service.datasets.options import ReadOptions
from service.datasets.readers.refusals import unreadable
from service.datasets.readers.tokens import Vocabulary, parse_number
from service.datasets.vocabulary import Decimal
from service.http.problems import ProblemError, ProblemItem
from service.http.words import counted

SAMPLE_CHARACTERS = 2**18
_SAMPLE_RECORDS = 100
_LIKELY = (",", ";", "\t", "|")
# Tried when none of the likely ones makes columns: they occur inside names and times.
_UNLIKELY = (" ", ":")
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.I)


class RecordReader(Protocol):
    """What `csv.reader` returns, which has no public type."""

    line_num: int

    def __iter__(self) -> Iterator[list[str]]:
        """Yield one record after the other."""


@dataclass(frozen=True)
class Dialect:
    """Everything needed to read the lines that follow `num_skipped` lines."""

    delimiter: str
    delimiter_detected: bool
    decimal: Decimal
    decimal_detected: bool
    num_skipped: int
    has_separator_line: bool
    skips_blanks: bool

    def reader(self, lines: io.TextIOBase) -> RecordReader:
        """Return a strict reader of records."""
        return _reader(lines, self.delimiter, skips_blanks=self.skips_blanks)


@dataclass(frozen=True)
class _Sample:
    """The first records under one delimiter, blank lines left out, with their line numbers."""

    delimiter: str
    records: list[list[str]]
    lines: list[int]

    @property
    def width(self) -> int:
        """The most common number of cells in a record."""
        return Counter(map(len, self.records)).most_common(1)[0][0]

    @property
    def consistency(self) -> float:
        """Share of the records that have the most common number of cells."""
        return sum(len(record) == self.width for record in self.records) / len(self.records)

    def body(self) -> list[str]:
        """Return the trimmed cells below the first record."""
        return [cell.strip() for record in self.records[1:] for cell in record]


def determine(sample: str, options: ReadOptions) -> Dialect:
    """Return the dialect of a file that begins with `sample`.

    Raises `ProblemError` where it cannot be told without guessing, or where lines stand above
    the header, and names the option to set.
    """
    lines = list(io.StringIO(sample, newline=""))
    num_skipped = options.skip_rows
    separator = _SEPARATOR_LINE.fullmatch(lines[num_skipped]) if len(lines) > num_skipped else None
    if separator:
        num_skipped += 1
    lines = lines[num_skipped:]
    if not any(line.strip() for line in lines):
        raise _nothing(options.skip_rows)
    declared = options.delimiter or (separator[1] if separator else None)
    best = _best_sample(lines, num_skipped, (declared,) if declared else _LIKELY, options)
    if not declared and best.width == 1:
        best = _best_sample(lines, num_skipped, (",", *_UNLIKELY), options)
    _refuse_lines_above_header(best)
    decimal = options.decimal or _determine_decimal(best, options)
    blank_before_quote = re.compile(f'{re.escape(best.delimiter)} +"')
    return Dialect(
        delimiter=best.delimiter,
        delimiter_detected=options.delimiter is None,
        decimal=decimal,
        decimal_detected=options.decimal is None,
        num_skipped=num_skipped,
        has_separator_line=separator is not None,
        skips_blanks=best.delimiter == " " or any(map(blank_before_quote.search, lines)),
    )


def _reader(
    lines: io.TextIOBase | list[str], delimiter: str, *, skips_blanks: bool
) -> RecordReader:
    return csv.reader(
        lines, delimiter=delimiter, strict=True, skipinitialspace=skips_blanks, quotechar='"'
    )


def _best_sample(
    lines: list[str], num_skipped: int, delimiters: tuple[str, ...], options: ReadOptions
) -> _Sample:
    samples = [_take_sample(lines, num_skipped, delimiter) for delimiter in delimiters]
    vocabularies = [Vocabulary.of(options, mark) for mark in Decimal]

    def rank(sample: _Sample) -> tuple[bool, float, float, int]:
        cells = sample.body()
        readable = max(sum(map(words.is_readable, cells)) for words in vocabularies)
        share = readable / len(cells) if cells else 0.0
        return sample.width > 1, sample.consistency, share, sample.width

    return max(samples, key=rank)


def _take_sample(lines: list[str], num_skipped: int, delimiter: str) -> _Sample:
    reader = _reader(lines, delimiter, skips_blanks=True)
    records: list[list[str]] = []
    numbers: list[int] = []
    last = 0
    try:
        for record in reader:
            if any(cell.strip() for cell in record) or len(record) > 1:
                records.append(record)
                numbers.append(num_skipped + last + 1)
            last = reader.line_num
            if len(records) == _SAMPLE_RECORDS:
                break
    except csv.Error:
        # A quoted cell that the sample cuts off, or a mistake that reading will report.
        pass
    return _Sample(delimiter, records or [[""]], numbers or [1])


def _determine_decimal(sample: _Sample, options: ReadOptions) -> Decimal:
    """Return the mark under which more cells can be read; a point if the cells do not tell."""
    cells = sample.body()
    readable = {mark: sum(map(Vocabulary.of(options, mark).is_readable, cells)) for mark in Decimal}
    is_comma = readable[Decimal.COMMA] > readable[Decimal.POINT]
    decimal = Decimal.COMMA if is_comma else Decimal.POINT
    # Points may group digits only where commas are decimal marks, and there `;` delimits.
    if decimal is Decimal.COMMA or sample.delimiter == ";":
        _refuse_grouped_digits(cells, decimal)
    return decimal


def _refuse_grouped_digits(cells: list[str], decimal: Decimal) -> None:
    grouped = re.compile(rf"[+-]?[1-9]\d{{0,2}}{re.escape(decimal)}\d{{3}}")
    marked = [cell for cell in cells if decimal in cell and parse_number(cell, decimal) is not None]
    if marked and all(map(grouped.fullmatch, marked)):
        example = marked[0]
        read = example.replace(decimal, ".")
        raise unreadable(
            f"Cells such as {example!r} may be {read} or a number with grouped digits. Set "
            f"`decimal={decimal}` if the mark is a decimal mark; grouped digits are not read.",
            ProblemItem(message="Cannot be told from the file.", parameter="decimal", cell=example),
        )


def _refuse_lines_above_header(sample: _Sample) -> None:
    widths = [len(record) for record in sample.records]
    if widths[0] == sample.width or len(widths) < 2:
        return
    if widths[0] == sample.width - 1 and set(widths[1:]) == {sample.width}:
        raise unreadable(
            f"Every row has {sample.width} cells and the header {widths[0]}: the first column, "
            "row names perhaps, has no name. Name it or leave it out.",
            ProblemItem(message="One name is missing.", line=sample.lines[0]),
        )
    first = widths.index(sample.width)
    if len(set(widths[first:])) == 1 and len(widths) - first > 1:
        line = sample.lines[first]
        raise unreadable(
            f"The lines above line {line} have other numbers of cells than the "
            f"{sample.width} of that line and those below it, like a title. Set "
            f"`skip_rows={line - 1}` if line {line} holds the names; set `units_row=true` if the "
            "line below it holds units.",
            ProblemItem(
                message=f"{counted(widths[0], 'cell')}, later lines have {sample.width}.",
                line=sample.lines[0],
                cell=sample.records[0][0][:80],
            ),
        )


def _nothing(skip_rows: int) -> ProblemError:
    if skip_rows:
        return unreadable(
            f"Nothing is left below the {skip_rows} skipped lines.",
            ProblemItem(message="Skips the whole file.", parameter="skip_rows"),
        )
    return unreadable("The file is empty.")

"""CSV to columns of doubles, record by record, in blocks that keep memory flat."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import BinaryIO

import pyarrow as pa

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.readers import character_encoding as encoding
from service.datasets.readers import csv_dialect
from service.datasets.readers.cells import CellLedger
from service.datasets.readers.csv_dialect import Dialect, RecordReader
from service.datasets.readers.names import check_names, label_columns
from service.datasets.readers.parsed import LineIndex, ParsedTable
from service.datasets.readers.refusals import MAX_ITEMS, shorten, too_large, unreadable
from service.datasets.readers.tokens import Vocabulary, parse_number
from service.datasets.schemas import Change, CsvDialect
from service.datasets.vocabulary import ChangeCode, DatasetFormat, Decimal
from service.http.problems import ProblemError, ProblemItem
from service.http.words import counted

# Small enough that other threads get their turn between blocks.
_BLOCK_CELLS = 50_000


def read_csv(file: BinaryIO, options: ReadOptions, limits: ReadLimits) -> ParsedTable:
    """Return the table in a CSV file.

    Raises `ProblemError` for anything that cannot be read without guessing: encoding, dialect,
    lines above the header, ragged rows, unclosed quotes, nameless or repeated columns.
    """
    characters = encoding.determine(file, options.encoding)
    with _opened(file, characters, options) as (dialect, records):
        table = _CsvTable(dialect, options, limits)
        table.read(records)
    return table.parsed(characters)


def read_texts(file: BinaryIO, options: ReadOptions) -> Iterator[list[str]]:
    """Yield the cells of each row of a file that `read_csv` has read, as they are written there.

    But for blanks around them and decimal commas, which become points.
    """
    characters = encoding.determine(file, options.encoding)
    with _opened(file, characters, options) as (dialect, records):
        for _, record in islice(records, 1 + options.units_row, None):
            cells = [cell.strip() for cell in record]
            if dialect.decimal is Decimal.COMMA:
                cells = [cell.replace(",", ".") for cell in cells]
            yield cells


@contextmanager
def _opened(
    file: BinaryIO, characters: encoding.TextEncoding, options: ReadOptions
) -> Iterator[tuple[Dialect, "_Records"]]:
    """Yield how the file is written, and its records from the header on."""
    with characters.open(file) as text:
        sample = text.read(csv_dialect.SAMPLE_CHARACTERS)
        if text.read(1):
            sample = sample[: max(sample.rfind("\n"), sample.rfind("\r")) + 1] or sample
    dialect = csv_dialect.determine(sample, options)
    with characters.open(file) as text:
        for _ in islice(text, dialect.num_skipped):
            pass
        yield dialect, _Records(dialect.reader(text), dialect.num_skipped)


class _Records:
    """The non-blank records of a file with the lines they begin in."""

    def __init__(self, reader: RecordReader, num_skipped: int) -> None:
        self._reader = reader
        self._num_skipped = num_skipped
        self.num_blank = 0

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        last = 0
        try:
            for record in self._reader:
                line, last = last + 1, self._reader.line_num
                if not record or (len(record) == 1 and record[0].isspace()):
                    self.num_blank += 1
                else:
                    yield self._num_skipped + line, record
        except csv.Error as error:
            raise _broken_quotes(str(error), self._num_skipped + last + 1) from error


class _CsvTable:
    """The columns of one CSV file while it is being read."""

    def __init__(self, dialect: Dialect, options: ReadOptions, limits: ReadLimits) -> None:
        self._dialect = dialect
        self._options = options
        self._limits = limits
        self._ledger = CellLedger(Vocabulary.of(options, dialect.decimal))
        self._lines = LineIndex()
        self._chunks: list[list[pa.Array]] = []
        self._num_rows = 0
        self._num_blank = 0
        self._header_line = 1
        self._names: list[str] = []
        self._units: list[str] | None = None

    def read(self, source: _Records) -> None:
        """Read header, units and rows."""
        records = iter(source)
        self._header_line, self._names = next(records)
        # A nameless first column may hold row numbers, which only its cells can tell.
        is_nameless = not self._names[0].strip()
        check_names(self._names[is_nameless:], self._limits, first_position=1 + is_nameless)
        _refuse_numbers_as_names(self._names, self._header_line, self._dialect.decimal)
        self._ledger.labels = label_columns(self._names, self._options)
        self._chunks = [[] for _ in self._names]
        if self._options.units_row:
            self._units = self._read_units(next(records, None))
        self._read_rows(records, len(self._names))
        self._num_blank = source.num_blank

    def _read_rows(self, records: Iterator[tuple[int, list[str]]], width: int) -> None:
        block_rows = max(1, _BLOCK_CELLS // width)
        ragged: list[ProblemItem] = []
        block: list[list[str]] = []
        for row, (line, record) in enumerate(records, start=1):
            self._lines.add(row, line)
            if len(record) == width:
                block.append(record)
            elif len(ragged) < MAX_ITEMS:
                ragged.append(_ragged_item(record, width, row, line))
            else:
                break
            if len(block) == block_rows:
                self._add(block)
                block = []
                if self._ledger.is_hopeless:
                    break
        if ragged:
            raise unreadable(_ragged_detail(ragged, width), *ragged)
        self._add(block)

    def parsed(self, characters: encoding.TextEncoding) -> ParsedTable:
        """Return what was read."""
        dialect = CsvDialect(
            delimiter=self._dialect.delimiter,
            delimiter_detected=self._dialect.delimiter_detected,
            decimal=self._dialect.decimal,
            decimal_detected=self._dialect.decimal_detected,
            header_line=self._header_line,
        )
        return ParsedTable(
            format=DatasetFormat.CSV,
            names=self._names,
            columns=[pa.chunked_array(chunks, pa.float64()) for chunks in self._chunks],
            ledger=self._ledger,
            changes=list(self._changes()),
            units=self._units,
            lines=self._lines,
            encoding=characters,
            csv_dialect=dialect,
        )

    def _add(self, block: list[list[str]]) -> None:
        if (self._num_rows + len(block)) * len(self._names) > self._limits.max_cells:
            raise too_large("The table has too many cells.", "max_cells", self._limits.max_cells)
        if not block:
            return
        # Column after column, so that one pass serves any number of columns.
        texts = pa.array(list(chain.from_iterable(zip(*block, strict=True))), pa.string())
        arrays = self._ledger.read(texts, range(len(self._names)), self._num_rows + 1)
        for chunks, values in zip(self._chunks, arrays, strict=True):
            chunks.append(values)
        self._num_rows += len(block)

    def _read_units(self, record: tuple[int, list[str]] | None) -> list[str]:
        if record is None:
            raise unreadable("The file ends before the units row.")
        line, cells = record
        if len(cells) != len(self._names):
            item = _ragged_item(cells, len(self._names), 1, line)
            raise unreadable(f"The units row does not fit the header: {item.message}", item)
        units = [cell.strip() for cell in cells]
        filled = [unit for unit in units if unit]
        if filled and all(parse_number(unit, self._dialect.decimal) is not None for unit in filled):
            raise unreadable(
                f"`units_row=true`, but line {line} holds numbers only; it would be lost.",
                ProblemItem(message="Numbers, not units.", line=line, cell=shorten(filled[0])),
            )
        return units

    def _changes(self) -> Iterator[Change]:
        skipped = self._options.skip_rows
        blanks = self._num_blank
        if skipped:
            yield _change(
                ChangeCode.LINES_SKIPPED,
                f"{counted(skipped, 'line was', 'lines were')} skipped.",
                skipped,
            )
        if self._dialect.has_separator_line:
            yield _change(ChangeCode.SEPARATOR_LINE_SKIPPED, "A line sep=… told the delimiter.", 1)
        if self._units is not None:
            message = "The row below the header was kept as units, not as data."
            yield _change(ChangeCode.UNITS_ROW_SKIPPED, message, 1)
        if blanks:
            message = f"{counted(blanks, 'blank line was', 'blank lines were')} ignored."
            yield _change(ChangeCode.BLANK_LINES_IGNORED, message, blanks)
        if self._dialect.skips_blanks:
            message = "Blanks after delimiters were skipped in all columns."
            yield _change(ChangeCode.CELLS_TRIMMED, message, len(self._names))


def _change(code: ChangeCode, message: str, count: int) -> Change:
    return Change(code=code, message=message, columns=[], count=count)


def _refuse_numbers_as_names(names: list[str], line: int, decimal: Decimal) -> None:
    texts = [name.strip() for name in names]
    if any(parse_number(text, decimal) is None for text in texts):
        return
    if not all(text.isdigit() for text in texts):
        raise unreadable(
            f"Line {line} should hold the names of the columns and holds numbers. Add a header "
            "line.",
            ProblemItem(message="Numbers, not names.", line=line, cell=shorten(texts[0])),
        )


def _ragged_item(record: list[str], width: int, row: int, line: int) -> ProblemItem:
    return ProblemItem(
        message=f"{counted(len(record), 'cell')}, the header has {width}.", row=row, line=line
    )


def _ragged_detail(ragged: list[ProblemItem], width: int) -> str:
    first = ragged[0]
    return (
        f"{counted(len(ragged), 'row does', 'rows do')} not have {width} cells like the header; "
        f"the first is row {first.row} in line {first.line}: {first.message} Quote cells that hold "
        "the delimiter; lines above the header are left out by `skip_rows`."
    )


def _broken_quotes(message: str, line: int) -> ProblemError:
    if "end of data" in message:
        complaint = "a quoted cell is never closed"
    elif "expected after" in message:
        complaint = "text follows a closing quote"
    else:
        complaint = message
    return unreadable(
        f"The row that begins in line {line} cannot be read: {complaint}.",
        ProblemItem(message=f"{complaint[0].upper()}{complaint[1:]}.", line=line),
    )

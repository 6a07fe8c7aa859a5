"""What every reader returns: columns of doubles under their names as uploaded."""

from bisect import bisect_right
from dataclasses import dataclass, field

import pyarrow as pa

from service.datasets.readers.cells import CellLedger
from service.datasets.readers.character_encoding import TextEncoding
from service.datasets.schemas import Change, CsvDialect
from service.datasets.vocabulary import DatasetFormat, JsonLayout


class LineIndex:
    """Which line of a file each row begins in; short where rows follow one another."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._lines: list[int] = []
        self._offset: int | None = None

    def add(self, row: int, line: int) -> None:
        """Note that `row`, the next one, begins in `line`."""
        if line - row != self._offset:
            self._offset = line - row
            self._rows.append(row)
            self._lines.append(line)

    def line(self, row: int) -> int:
        """Return the line of a row that was passed or skipped over by `add`."""
        place = bisect_right(self._rows, row) - 1
        return self._lines[place] + row - self._rows[place]


@dataclass
class ParsedTable:
    """A table as a reader found it, before its names and cells are judged."""

    format: DatasetFormat
    names: list[str]
    columns: list[pa.ChunkedArray]
    ledger: CellLedger
    changes: list[Change] = field(default_factory=list)
    units: list[str] | None = None
    lines: LineIndex | None = None
    encoding: TextEncoding | None = None
    csv_dialect: CsvDialect | None = None
    json_layout: JsonLayout | None = None

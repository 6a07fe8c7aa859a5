"""JSON to columns of doubles: records, columns, or names with rows ("split")."""

import json
import math
import re
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.readers import character_encoding as encoding
from service.datasets.readers.cells import LARGEST_EXACT_INTEGER, CellLedger
from service.datasets.readers.names import check_names, label_columns
from service.datasets.readers.parsed import ParsedTable
from service.datasets.readers.refusals import MAX_ITEMS, shorten, too_large, unreadable
from service.datasets.readers.tokens import Vocabulary
from service.datasets.schemas import Change
from service.datasets.vocabulary import ChangeCode, DatasetFormat, JsonLayout
from service.http.problems import ProblemError, ProblemItem
from service.http.words import counted

_LAYOUTS = (
    'records, [{"a": 1, "b": 2}, ...]; columns, {"a": [1, ...], "b": [2, ...]}; or names with '
    'rows, {"columns": ["a", "b"], "data": [[1, 2], ...]}'
)
_STRING_OR_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN')


class _Absent:
    """Stands for a key that a record does not have."""


class _Record:
    """Stands for a record whose values are already in the columns."""


class _Members(list[tuple[str, Any]]):
    """An object that holds lists, in the order of its keys; values are whatever JSON holds."""


_ABSENT: Final = _Absent()
_RECORD: Final = _Record()


def read_json(file: BinaryIO, options: ReadOptions, limits: ReadLimits) -> ParsedTable:
    """Return the table in a JSON document.

    Raises `ProblemError` for a document that is not valid JSON (NaN and Infinity are not), is in
    no known layout, repeats a key, or holds rows or columns of unequal length.
    """
    characters = encoding.determine(file, options.encoding)
    with characters.open(file) as text:
        document = text.read()
    records = _RecordColumns(limits)
    kinds = _Kinds()
    layout, by_name = _layout(_parse(document, records), records, kinds)
    del document  # the largest object of all, and no longer needed
    names = list(by_name)
    check_names(names, limits)
    lengths = {name: len(cells) for name, cells in by_name.items()}
    if len(set(lengths.values())) > 1:
        raise _unequal_columns(lengths)
    if len(names) * max(lengths.values(), default=0) > limits.max_cells:
        raise too_large("The table has too many cells.", "max_cells", limits.max_cells)
    ledger = CellLedger(Vocabulary.of(options))
    ledger.labels = label_columns(names, options)
    return ParsedTable(
        format=DatasetFormat.JSON,
        names=names,
        columns=[
            pa.chunked_array([_numbers(by_name.pop(name), number, name, ledger, kinds)])
            for number, name in enumerate(names)
        ],
        ledger=ledger,
        changes=kinds.changes(),
        encoding=characters,
        json_layout=layout,
    )


class _RecordColumns:
    """Columns that fill as the parser finishes records, so that no record is kept as an object."""

    def __init__(self, limits: ReadLimits) -> None:
        self._limits = limits
        self.num_rows = 0
        self.cells: dict[str, list[Any]] = {}  # any JSON value

    def take(self, pairs: list[tuple[str, Any]]) -> _Record | _Members:
        """Add a finished object as a row, unless it holds lists; called by the parser."""
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys):
            repeated = next(key for key in keys if keys.count(key) > 1)
            raise unreadable(
                f"The key {shorten(repeated)!r} occurs twice in one object (record "
                f"{self.num_rows + 1} if the objects are records).",
                ProblemItem(message="Repeated key.", column=shorten(repeated)),
            )
        if any(isinstance(value, list) for _, value in pairs):
            return _Members(pairs)
        self.num_rows += 1
        for key, value in pairs:
            cells = self.cells.get(key)
            if cells is None:
                cells = self.cells[key] = []
                self._check_size()
            if len(cells) < self.num_rows - 1:
                cells.extend([_ABSENT] * (self.num_rows - 1 - len(cells)))
            cells.append(value)
        return _RECORD

    def columns(self) -> dict[str, list[Any]]:
        """Return the columns, all of the same length."""
        self._check_size()
        for cells in self.cells.values():
            cells.extend([_ABSENT] * (self.num_rows - len(cells)))
        return self.cells

    def _check_size(self) -> None:
        if len(self.cells) > self._limits.max_columns:
            raise too_large(
                "The table has too many columns.", "max_columns", self._limits.max_columns
            )
        if len(self.cells) * self.num_rows > self._limits.max_cells:
            raise too_large("The table has too many cells.", "max_cells", self._limits.max_cells)


class _Kinds:
    """What the document held besides numbers and null."""

    def __init__(self) -> None:
        self.has_index = False
        self.texts: list[str] = []
        self.booleans: list[str] = []
        self.absent: list[str] = []

    def changes(self) -> list[Change]:
        """Return what was made of them."""
        found = (
            (ChangeCode.KEYS_ABSENT, "Keys absent from a record are missing cells.", self.absent),
            (ChangeCode.TEXT_READ_AS_NUMBERS, "Texts were read like CSV cells.", self.texts),
            (ChangeCode.BOOLEANS_READ_AS_NUMBERS, "true was read as 1, false as 0.", self.booleans),
        )
        return [
            Change(code=code, message=message, columns=columns, count=len(columns))
            for code, message, columns in found
            if columns
        ] + self._index_changes()

    def _index_changes(self) -> list[Change]:
        if not self.has_index:
            return []
        message = "The member `index` holds row labels and is no variable."
        code = ChangeCode.INDEX_COLUMN_EXCLUDED
        return [Change(code=code, message=message, columns=[], count=1)]


def _parse(document: str, columns: _RecordColumns) -> object:
    if not document.strip():
        raise unreadable("The file is empty.")
    try:
        return json.loads(
            document,
            object_pairs_hook=columns.take,
            parse_constant=lambda constant: _refuse_constant(document, constant),
        )
    except json.JSONDecodeError as error:
        raise unreadable(
            f"Not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}. JSON Lines "
            "and comments are not read.",
            ProblemItem(message=error.msg, line=error.lineno),
        ) from error
    except RecursionError as error:
        raise unreadable(f"The JSON is nested too deeply. Send {_LAYOUTS}.") from error
    except ValueError as error:  # an integer of thousands of digits
        raise unreadable("A whole number in the JSON is too large for a double.") from error


def _refuse_constant(document: str, constant: str) -> None:
    """Raise the problem of a bare NaN or Infinity, whose place the parser does not tell."""
    found = next(m for m in _STRING_OR_CONSTANT.finditer(document) if m[0] == constant)
    line = document.count("\n", 0, found.start()) + 1
    character = found.start() - document.rfind("\n", 0, found.start())
    raise unreadable(
        f"{constant} at line {line}, column {character} is not valid JSON. Write null for a "
        "missing cell.",
        ProblemItem(message=f"{constant} is not JSON; write null.", line=line, cell=constant),
    )


def _layout(
    document: object, records: _RecordColumns, kinds: _Kinds
) -> tuple[JsonLayout, dict[str, list[Any]]]:
    if isinstance(document, list) and not isinstance(document, _Members):
        stray = next((i for i, item in enumerate(document, 1) if item is not _RECORD), None)
        if document and stray is None:
            return JsonLayout.RECORDS, records.columns()
        if not document:
            raise unreadable("The list holds no record.")
        raise unreadable(
            f"Item {stray} of the list is not a record of plain values. Send {_LAYOUTS}.",
            ProblemItem(message="Not a record of plain values.", row=stray),
        )
    if not isinstance(document, _Members):
        raise unreadable(f"The JSON holds no table. Send {_LAYOUTS}.")
    members = dict(document)
    names, rows = members.get("columns"), members.get("data")
    if (
        isinstance(names, list)
        and isinstance(rows, list)
        and all(isinstance(name, str) for name in names)
        and all(isinstance(row, list) for row in rows)
        and members.keys() <= {"columns", "index", "data"}
    ):
        kinds.has_index = "index" in members
        return JsonLayout.SPLIT, _split_columns(names, rows)
    for name, cells in document:
        if not isinstance(cells, list):
            raise unreadable(
                f"The member {shorten(name)!r} is not a list. Send {_LAYOUTS}.",
                ProblemItem(message="Not a list of cells.", column=shorten(name)),
            )
    return JsonLayout.COLUMNS, members


def _split_columns(names: list[str], rows: list[list[Any]]) -> dict[str, list[Any]]:
    width = len(names)
    ragged = [
        ProblemItem(message=f"{counted(len(row), 'cell')}, there are {width} names.", row=number)
        for number, row in enumerate(rows, start=1)
        if len(row) != width
    ]
    if ragged:
        listed = ", ".join(str(item.row) for item in ragged[:10])
        raise unreadable(
            f"{counted(len(ragged), 'row does', 'rows do')} not have {width} cells: {listed}.",
            *ragged,
        )
    if len(set(names)) < width:
        repeated = next(name for name in names if names.count(name) > 1)
        places = ", ".join(str(i) for i, name in enumerate(names, 1) if name == repeated)
        raise unreadable(
            f"The name {shorten(repeated)!r} stands at positions {places}.",
            ProblemItem(message=f"Positions {places}.", column=shorten(repeated)),
        )
    if not rows:
        return {name: [] for name in names}
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _unequal_columns(lengths: dict[str, int]) -> ProblemError:
    listed = ", ".join(f"{shorten(name)!r}: {length}" for name, length in lengths.items())
    items = [
        ProblemItem(message=f"{counted(length, 'cell')}.", column=shorten(name))
        for name, length in list(lengths.items())[:MAX_ITEMS]
    ]
    return unreadable(f"The columns are of unequal length ({shorten(listed)}).", *items)


def _numbers(
    cells: list[Any], number: int, name: str, ledger: CellLedger, kinds: _Kinds
) -> pa.Array:
    """Return the cells of one column as doubles; empties the list."""
    found = set(map(type, cells))
    if not found <= {float, int, bool, str, type(None), _Absent}:
        row = next(i for i, cell in enumerate(cells, 1) if isinstance(cell, (list, _Record)))
        raise unreadable(
            f"Row {row} of column {shorten(name)!r} is a list or an object, not a number.",
            ProblemItem(message="Not a plain value.", column=shorten(name), row=row),
        )
    if number in ledger.labels and str in found:
        cells[:] = [str(cell) if isinstance(cell, int | float) else cell for cell in cells]
        found &= {str, type(None), _Absent}
    if bool in found:
        kinds.booleans.append(name)
    if _Absent in found:
        kinds.absent.append(name)
        ledger.count_missing(number, "(absent)", sum(cell is _ABSENT for cell in cells))
    if type(None) in found:
        ledger.count_missing(number, "null", sum(cell is None for cell in cells))
    texts = None
    if str in found:
        if number not in ledger.labels:
            kinds.texts.append(name)
        texts = pa.array(
            [_encodable(c) if isinstance(c, str) else None for c in cells], pa.string()
        )
    values = pa.array((_as_double(cell, number, ledger) for cell in cells), pa.float64())
    cells.clear()
    values = ledger.take_numbers(values, number, 1)
    if texts is None:
        return values
    return pc.coalesce(values, ledger.read(texts, range(number, number + 1), 1)[0])


def _encodable(text: str) -> str:
    """Return a text with half surrogate pairs, which only JSON can hold, spelled out."""
    return text.encode(errors="backslashreplace").decode()


def _as_double(cell: object, number: int, ledger: CellLedger) -> float | None:
    if isinstance(cell, float):
        return cell
    if not isinstance(cell, int):
        return None
    if abs(cell) > LARGEST_EXACT_INTEGER:
        ledger.large_integers[number] += 1
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf

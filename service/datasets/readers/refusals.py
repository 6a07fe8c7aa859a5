"""The answer to an upload that cannot be read without guessing."""

from typing import NoReturn

from service.datasets.readers.cells import CellLedger, Refused
from service.datasets.readers.tokens import hint
from service.http.problems import ProblemCode, ProblemError, ProblemItem
from service.http.words import counted

MAX_CELL_CHARACTERS = 80
MAX_ITEMS = 100
# With more of them the column itself is refused, not every text.
_MOST_TEXTS_OF_A_COLUMN = 10


def unreadable(detail: str, *items: ProblemItem) -> ProblemError:
    """Return the problem of a table that cannot be read."""
    return ProblemError(ProblemCode.UNREADABLE_DATASET, detail, errors=list(items[:MAX_ITEMS]))


def too_large(what: str, setting: str, allowed: int) -> ProblemError:
    """Return the problem of a table that is larger than a field of `Settings` allows."""
    return ProblemError(
        ProblemCode.PAYLOAD_TOO_LARGE,
        f"{what} The most allowed is {allowed}, set by VNCE_{setting.upper()}; nothing was stored.",
    )


def not_for(option: str, format_name: str) -> ProblemError:
    """Return the problem of an option that means nothing for the upload's format."""
    item = ProblemItem(message=f"Does not apply to {format_name}; leave it out.", parameter=option)
    return unreadable(f"`{option}` does not apply to a body of format {format_name}.", item)


def shorten(text: str) -> str:
    """Return a cell's text or a name, cut and encodable, as an answer may echo it."""
    cut = text if len(text) <= MAX_CELL_CHARACTERS else text[: MAX_CELL_CHARACTERS - 1] + "…"
    return cut.encode(errors="backslashreplace").decode()


def refuse_cells(ledger: CellLedger, names: list[str], lines: dict[int, int]) -> NoReturn:
    """Raise the problem that lists every refused text by column, with its first row and count.

    `lines` maps rows to lines of the file, where lines exist.
    """
    by_column: dict[int, list[Refused]] = {}
    for cell in sorted(
        ledger.refused.values(), key=lambda cell: (cell.column, -cell.count, cell.row)
    ):
        by_column.setdefault(cell.column, []).append(cell)
    items = [
        item
        for cells in by_column.values()
        for item in (
            [_column_item(cells, names, lines)]
            if len(cells) > _MOST_TEXTS_OF_A_COLUMN
            else [_item(cell, names, lines) for cell in cells]
        )
    ]
    shown = ", ".join(f"{item.cell!r} in {item.column!r} ({item.count})" for item in items[:5])
    more = "" if len(items) <= 5 else f" and {len(items) - 5} more"
    at_least = "At least " if ledger.is_hopeless else ""
    raise unreadable(
        f"{at_least}{counted(ledger.num_refused, 'cell is', 'cells are')} neither numeric nor "
        f"known to mean missing: {shown}{more}. "
        "Correct them, leave columns of text out, name those that mean missing in `na_values`, or "
        "name columns of labels in `labels`.",
        *items,
    )


def refuse_units_row(refused: list[Refused], names: list[str], line: int) -> NoReturn:
    """Raise the problem of a first row that holds text where all others hold numbers."""
    items = [_item(cell, names, {1: line}) for cell in refused]
    raise unreadable(
        "Row 1 of the data holds text and no other row does: it looks like units. "
        "Set `units_row=true` to keep it as units.",
        *items,
    )


def _column_item(cells: list[Refused], names: list[str], lines: dict[int, int]) -> ProblemItem:
    first = min(cells, key=lambda cell: cell.row)
    return ProblemItem(
        message=f"The column holds at least {len(cells)} different texts, the first of them in "
        f"row {first.row}; is it one of labels? Leave it out, or name it in `labels`.",
        column=names[first.column],
        row=first.row,
        line=lines.get(first.row),
        cell=shorten(first.text),
        count=sum(cell.count for cell in cells),
    )


def _item(cell: Refused, names: list[str], lines: dict[int, int]) -> ProblemItem:
    advice = hint(cell.text)
    return ProblemItem(
        message="Neither a number nor a known missing token" + (f": {advice}." if advice else "."),
        column=names[cell.column],
        row=cell.row,
        line=lines.get(cell.row),
        cell=shorten(cell.text),
        count=cell.count,
    )

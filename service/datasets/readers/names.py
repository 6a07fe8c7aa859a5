"""Column names: Unicode NFC, trimmed, unique, without control characters."""

import unicodedata
from collections import defaultdict
from collections.abc import Sequence

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.readers.refusals import shorten, too_large, unreadable
from service.datasets.schemas import Change
from service.datasets.vocabulary import ChangeCode
from service.http.problems import ProblemItem

_REPLACEMENT = "\ufffd"


def clean_name(raw: str) -> str:
    """Return a name as it is stored and compared: Unicode NFC, without surrounding blanks."""
    return unicodedata.normalize("NFC", raw).strip()


def label_columns(names: Sequence[str], options: ReadOptions) -> dict[int, dict[str, int]]:
    """Return the columns that hold labels, by their numbers, with none numbered yet."""
    wanted = set(map(clean_name, options.labels))
    return {number: {} for number, name in enumerate(names) if clean_name(name) in wanted}


def check_names(raw: Sequence[str], limits: ReadLimits, *, first_position: int = 1) -> list[str]:
    """Return the cleaned names; `first_position` is the number of the first column in the file.

    Raises `ProblemError` that lists every nameless, repeated or unusable name with its position.
    """
    if len(raw) > limits.max_columns:
        raise too_large(f"The table has {len(raw)} columns.", "max_columns", limits.max_columns)
    names = [clean_name(name) for name in raw]
    positions: dict[str, list[int]] = defaultdict(list)
    for position, name in enumerate(names, start=first_position):
        positions[name].append(position)
    items = [
        ProblemItem(message=message, column=shorten(name))
        for name, found in positions.items()
        if (message := _complaint(name, found, limits))
    ]
    if items:
        complaints = "; ".join(f"{item.column!r}: {item.message}" for item in items[:5])
        raise unreadable(f"Every column needs a name of its own. {complaints}", *items)
    return names


def name_changes(raw: Sequence[str], names: Sequence[str]) -> list[Change]:
    """Return what cleaning has changed."""
    trimmed = [name for name, old in zip(names, raw, strict=True) if old != old.strip()]
    composed = [
        name
        for name, old in zip(names, raw, strict=True)
        if unicodedata.normalize("NFC", old) != old
    ]
    changes = []
    if trimmed:
        message = "Blanks around names were left out."
        changes.append((ChangeCode.NAMES_TRIMMED, message, trimmed))
    if composed:
        message = "Names were brought to Unicode normal form C, in which requests may spell them."
        changes.append((ChangeCode.NAMES_NORMALISED, message, composed))
    return [
        Change(code=code, message=message, columns=columns, count=len(columns))
        for code, message, columns in changes
    ]


def _complaint(name: str, positions: list[int], limits: ReadLimits) -> str:
    places = ", ".join(map(str, positions))
    if not name:
        return f"no name (position {places})."
    if len(positions) > 1:
        return f"the same name at positions {places} (compared after Unicode NFC)."
    if len(name) > limits.max_name_length:
        return (
            f"{len(name)} characters at position {places}; {limits.max_name_length} are allowed, "
            "set by VNCE_MAX_NAME_LENGTH."
        )
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        return f"a line break or control character in the name at position {places}."
    if _REPLACEMENT in name:
        return f"a replacement mark (U+FFFD) in the name at position {places}; check `encoding`."
    return ""

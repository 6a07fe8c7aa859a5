"""What a report says of one job about a network: a verdict, facts, a figure, a table."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from service.http.words import counted
from service.results.outcome import Artefact

# Longer tables are files of the result.
MOST_ROWS = 60


@dataclass(frozen=True)
class Picture:
    """A figure as a data URL, so that its identifiers and styles are its own."""

    url: str
    caption: str


@dataclass(frozen=True)
class Row:
    """A line of a table; what matters is bold."""

    heading: str
    cells: Sequence[str]
    is_bold: bool = False


@dataclass(frozen=True)
class Table:
    """A table with a heading a column, the first that of the rows' own."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Row]


@dataclass(frozen=True)
class Section:
    """What a report says of one job; works that `methods` cites are found by `references`."""

    heading: str
    verdict: str
    facts: Sequence[str]
    pictures: Sequence[Picture]
    tables: Sequence[Table]
    methods: str


def pictures(artefacts: Iterable[Artefact], captions: Mapping[str, str]) -> list[Picture]:
    """Return those figures that are among the `artefacts`, in the order of their `captions`."""
    contents = {artefact.name: artefact.content for artefact in artefacts}
    return [
        Picture(f"data:image/svg+xml;base64,{base64.b64encode(content).decode()}", caption)
        for name, caption in captions.items()
        if (content := contents.get(f"figures/{name}.svg")) is not None
    ]


def number(value: float | None, form: str = "+.3f") -> str:
    """Return a number, or nothing where it is not known."""
    return "" if value is None else format(value, form)


def interval(lower: float | None, upper: float | None) -> str:
    """Return an interval, or nothing where it is not known."""
    return "" if lower is None or upper is None else f"{lower:+.3f} to {upper:+.3f}"


def failures(causes: Mapping[str, int], number_asked: int, noun: str) -> list[str]:
    """Return in a sentence a cause how many of what was asked for have failed."""
    return [
        f"{count} of {counted(number_asked, noun)} failed: {cause.rstrip('.')}."
        for cause, count in causes.items()
    ]


def extent(number_shown: int, number_of_all: int, which: str, file: str) -> str:
    """Return which pairs a table shows, those of `which` first; a `file` has them all."""
    if number_shown == number_of_all:
        return f"All {which} first."
    return f"{number_shown} of {number_of_all} {which} first; {file} has them all."

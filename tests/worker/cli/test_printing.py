"""Warnings of one kind are one line, figures are rounded, and times carry their zone."""

import time
from collections.abc import Iterator
from io import StringIO

import pytest
from rich.console import Console

from service.results.edges import Edge
from worker.cli.printing import edge_table, listing, one_a_kind, time_text


@pytest.fixture
def in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


def remark(code: str, message: str, *columns: str) -> dict[str, object]:
    return {"code": code, "message": message, "columns": list(columns)}


def test_of_several_of_a_kind_the_first_is_told_and_the_columns_of_the_others() -> None:
    remarks = [
        remark("outliers", "2 outliers in a.", "a"),
        remark("missing", "Cells are missing."),
        remark("outliers", "1 outlier in b.", "b"),
        remark("outliers", "9 outliers in c.", "c"),
    ]
    assert list(one_a_kind(remarks)) == [
        ("outliers", "2 outliers in a; likewise b, c."),
        ("missing", "Cells are missing."),
    ]


def test_without_columns_the_others_are_counted() -> None:
    remarks = [remark("lines-skipped", "A line was skipped.")] * 3
    assert list(one_a_kind(remarks)) == [("lines-skipped", "A line was skipped; 2 more like it.")]


def test_columns_that_a_message_does_not_name_stand_behind_it() -> None:
    [(_, line)] = one_a_kind([remark("constant", "Always the same.", "x", "y")])
    assert line == "Always the same. (x, y)"


@pytest.mark.usefixtures("in_new_york")
@pytest.mark.parametrize(
    ("moment", "text"),
    [
        ("2026-01-02T03:04:05.678901Z", "2026-01-01 22:04 EST"),
        ("2026-07-02T03:04:05Z", "2026-07-01 23:04 EDT"),
        (None, ""),
    ],
)
def test_times_are_local_to_the_minute_with_their_zone(moment: str | None, text: str) -> None:
    assert time_text(moment) == text


def test_figures_in_a_listing_are_rounded_and_control_characters_shown() -> None:
    console = Console(file=StringIO(), width=80)
    console.print(listing(("name", "mean"), [("\x1b[1m", 0.12345678901), ("b", 3), ("c", None)]))
    _, _, _, *cells = console.file.getvalue().split()
    assert cells == ["\\x1b[1m", "0.123457", "b", "3", "c"]


def test_names_turn_no_text_on_the_terminal() -> None:
    console = Console(file=StringIO(), width=120)
    console.print(edge_table([Edge("a\u202e", "b", 0.1, -0.2, -0.2, True, 5)], None, "edges"))
    for _, line in one_a_kind([remark("outliers", "2 outliers.", "a\u202e")]):
        console.print(line)
    shown = console.file.getvalue()
    assert "\u202e" not in shown
    assert shown.count("a\\u202e") == 2

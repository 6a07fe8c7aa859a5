"""Counts agree with what is counted, and names give a terminal no orders."""

import pytest

from service.http.words import counted, visible


@pytest.mark.parametrize(("number", "text"), [(0, "0 cells"), (1, "1 cell"), (2, "2 cells")])
def test_one_is_singular_and_all_others_are_not(number: int, text: str) -> None:
    assert counted(number, "cell") == text


def test_words_without_a_plain_plural_name_theirs() -> None:
    assert counted(1, "row does", "rows do") == "1 row does"
    assert counted(3, "row does", "rows do") == "3 rows do"


def test_control_characters_are_written_out() -> None:
    assert visible("\x1b[2Jünï\tcode\x9b") == "\\x1b[2Jünï\\tcode\\x9b"

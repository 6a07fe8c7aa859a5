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


@pytest.mark.parametrize("code", [0x202E, 0x2066, 0x200B, 0x200D, 0xFEFF, 0x2028, 0x2029, 0xD800])
def test_what_has_no_width_or_turns_or_breaks_a_line_is_written_out(code: int) -> None:
    assert visible(f"a{chr(code)}b") == f"a\\u{code:04x}b"


def test_letters_of_all_scripts_are_left_as_they_are() -> None:
    text = "Größe e\u0301 \u05d0\u05d1 \u0645\u0646 温度 \u0939\u093f \N{THERMOMETER}"
    assert visible(text) == text

"""The picture of the rooms is that of the code, and every package says what belongs in it."""

import ast
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
PACKAGES = ("service", "worker", "vnce_engine")
# Entries that `ls` shows; what a newcomer reads at once.
MOST_ENTRIES = {"service": 14, "worker": 14, "vnce_engine": 16}


def test_the_picture_is_that_of_the_imports() -> None:
    drawn = runpy.run_path(str(PICTURES / "rooms.py"))["picture"]()
    assert drawn == (PICTURES / "rooms.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_shows_its_rooms_at_a_glance(package: str) -> None:
    entries = {path.name for path in (ROOT / package).iterdir()} - {"__pycache__"}
    assert len(entries) <= MOST_ENTRIES[package]


@pytest.mark.parametrize(
    "room",
    sorted(
        f"{name}/{path.parent.name}"
        for name in PACKAGES
        for path in Path(ROOT, name).glob("*/__init__.py")
    ),
)
def test_a_room_says_what_belongs_in_it_and_what_it_may_import(room: str) -> None:
    text = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8")))
    assert text
    assert text.splitlines()[0].endswith(".")
    assert "Imports " in text

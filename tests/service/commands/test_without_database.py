"""What an operator is told where the database that a command is for is not there."""

import sys
from pathlib import Path

import pytest

from service.__main__ import main


@pytest.mark.parametrize(
    ("command", "arguments"),
    [("expire", ["90"]), ("quota", []), ("keys", ["list"])],
)
def test_a_command_says_what_it_needs_instead_of_a_trace(
    command: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VNCE_DATABASE_URL", f"sqlite:///{tmp_path}/mistyped.db")
    monkeypatch.setattr(sys, "argv", ["service", command, *arguments])
    with pytest.raises(SystemExit, match="must answer, and be migrated"):
        main()


@pytest.mark.parametrize("days", ["-1", "nan"])
def test_results_of_no_age_are_not_deleted(days: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["service", "expire", days])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2

"""What is run by `python -m` says what it does when asked, and does nothing then."""

import importlib
import sys

import pytest

from service.__main__ import COMMANDS
from worker.processes import threads

PROGRAMS = (
    "service",
    *(f"service {command}" for command in COMMANDS),
    "worker",
    "worker.dispatcher",
    "worker.processes.health",
)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(("argument", "status"), [("--help", 0), ("--nonsense", 2)])
def test_a_program_tells_what_it_does_instead_of_doing_it(
    program: str,
    argument: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for variable in threads.VARIABLES:  # which the import of a worker sets
        monkeypatch.setenv(variable, "1")
    package, *command = program.split()
    module = importlib.import_module(package if "." in package else f"{package}.__main__")
    monkeypatch.setattr(sys, "argv", [package, *command, argument])
    with pytest.raises(SystemExit) as ended:
        module.main()
    assert ended.value.code == status
    told = capsys.readouterr()
    assert f"python -m {program}" in (told.out if status == 0 else told.err)

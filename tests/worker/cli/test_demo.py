import sys
from pathlib import Path

import pytest

from worker.cli.demo import serve_command


def test_the_command_that_keeps_the_service_running_works_from_where_the_user_stands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scripts = tmp_path / ".venv" / "bin"
    (scripts).mkdir(parents=True)
    (scripts / "vnce").touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(scripts / "python"))
    monkeypatch.setenv("PATH", "/usr/bin")

    monkeypatch.chdir(tmp_path)
    assert serve_command() == ".venv/bin/vnce serve"
    monkeypatch.chdir("/")
    assert serve_command() == f"{scripts.relative_to('/')}/vnce serve"
    monkeypatch.chdir("/usr")
    assert serve_command() == f"{scripts}/vnce serve"
    monkeypatch.setenv("PATH", str(scripts))
    assert serve_command() == "vnce serve"

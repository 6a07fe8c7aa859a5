import os
import subprocess
import sys
from pathlib import Path

import pytest

from worker.embedded.folder_lock import held
from worker.embedded.serve_error import ServeError


def test_a_held_folder_is_refused_naming_its_holder(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys; from worker.embedded.folder_lock import held\n"
        "with held(pathlib.Path(sys.argv[1])): pass"
    )
    second_holder = [sys.executable, "-c", code, str(tmp_path)]
    with held(tmp_path):
        second = subprocess.run(second_holder, capture_output=True, text=True)
    assert second.returncode != 0
    assert f"process {os.getpid()}" in second.stderr


def test_a_folder_can_be_held_again_after_it_was_let_go(tmp_path: Path) -> None:
    for _ in range(2):
        with held(tmp_path):
            assert (tmp_path / "lock").read_text() == str(os.getpid())


def test_two_holders_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    with held(tmp_path), pytest.raises(ServeError), held(tmp_path):
        pass

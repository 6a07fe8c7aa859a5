import os
import time
from pathlib import Path

import pytest

from worker.processes.health import MAX_AGE_SECONDS, is_alive, main


def test_a_process_that_has_not_touched_its_file_yet_is_not_alive(tmp_path: Path) -> None:
    assert not is_alive(tmp_path / "alive")


@pytest.mark.parametrize(
    ("age", "expected"), [(0, True), (MAX_AGE_SECONDS + 1, False), (-3600, False)]
)
def test_the_age_of_the_file_decides(tmp_path: Path, age: float, expected: bool) -> None:
    alive_file = tmp_path / "alive"
    alive_file.touch()
    os.utime(alive_file, (time.time() - age,) * 2)
    assert is_alive(alive_file) is expected


def test_the_check_fails_for_a_file_that_grew_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VNCE_ALIVE_FILE", str(tmp_path / "alive"))
    monkeypatch.setattr("sys.argv", ["health"])
    with pytest.raises(SystemExit, match="not touched lately"):
        main()
    (tmp_path / "alive").touch()
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0

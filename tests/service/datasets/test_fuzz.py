"""Damaged files over HTTP; the long run is `python -m tests.fuzz.uploads`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_every_damaged_file_is_read_or_refused_in_bounded_memory_and_time() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.fuzz.uploads", "--files", "150"],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 wrong answers" in done.stdout
    # Both kinds of answer came: the good files inside are really read.
    assert " 201 " in done.stdout
    assert " 422 unreadable-dataset" in done.stdout

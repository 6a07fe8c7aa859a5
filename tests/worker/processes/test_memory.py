"""What a process is said to hold is what the kernel knows."""

import mmap
import resource
import sys
from pathlib import Path

import pytest

from worker.processes.memory import resident_bytes

SIZE = 50_000_000


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="only Linux tells in /proc; what is said elsewhere, the next test shows",
)
def test_a_large_allocation_is_seen_and_no_more_than_the_process_ever_held() -> None:
    before = resident_bytes()
    # Pages of its own: the heap may have room from what earlier tests have freed.
    with mmap.mmap(-1, SIZE) as held:
        held[:: mmap.PAGESIZE] = bytes(len(range(0, SIZE, mmap.PAGESIZE)))
        after = resident_bytes()
    assert before is not None
    assert after is not None
    assert after - before >= 0.95 * SIZE
    # Linux gives the highest value in kilobytes.
    assert after <= 1.05 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_a_system_that_does_not_say_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.processes.memory._STATM", tmp_path / "none")
    assert resident_bytes() is None

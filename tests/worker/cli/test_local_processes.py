"""Processes that share the parts of a job on this machine."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import is_running, wait_for

# As a module of its own, which the processes import; each part tells of itself and hangs.
PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from worker.cli.local_processes import in_processes

def part(folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(600)

if __name__ == "__main__":
    # What starts the tests may have SIGINT ignored, as a shell has in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    list(in_processes(part, [sys.argv[1]] * 4))
"""


@pytest.mark.faults
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_they_end_with_the_process_that_started_them(tmp_path: Path, sent: signal.Signals) -> None:
    program, told = tmp_path / "program.py", tmp_path / "told"
    program.write_text(PROGRAM)
    told.mkdir()
    command = [sys.executable, str(program), str(told)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as parent:
        numbers = wait_for(lambda: [int(file.name) for file in told.iterdir()], "a part to begin")
        parent.send_signal(sent)
        parent.wait()
    for number in numbers:
        wait_for(lambda number=number: not is_running(number), f"{number} to end")

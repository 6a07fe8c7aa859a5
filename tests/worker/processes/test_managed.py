import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_SECONDS, is_running, wait_for
from worker.processes.managed import MAX_RESTARTS, Command, ManagedProcess, ProcessFailedError, stop

SLEEPS = "import time; print('up', flush=True); time.sleep(60)"
TELLS_OF_SIGTERM = (
    "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit('asked to end')); "
    f"{SLEEPS}"
)
IGNORES_SIGTERM = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPS}"


def start(tmp_path: Path, code: str, name: str = "sleeper") -> ManagedProcess:
    command = Command(name, [sys.executable, "-c", code], environment={})
    return ManagedProcess(command, tmp_path / f"{name}.log")


def wait_until_up(process: ManagedProcess) -> None:
    wait_for(lambda: "up" in process.log_file.read_text(), "the process")


def test_stop_ends_every_process_by_sigterm(tmp_path: Path) -> None:
    processes = [start(tmp_path, TELLS_OF_SIGTERM, name) for name in ("one", "two")]
    for process in processes:
        wait_until_up(process)
    stop(processes, seconds=PATIENCE_SECONDS)
    assert all(process.has_ended for process in processes)
    assert all("asked to end" in process.log_file.read_text() for process in processes)


@pytest.mark.faults
def test_stop_kills_what_ignores_sigterm(tmp_path: Path) -> None:
    process = start(tmp_path, IGNORES_SIGTERM)
    wait_until_up(process)
    stop([process], seconds=0.2)
    assert not is_running(process.pid)


def test_a_process_that_keeps_ending_is_given_up_with_its_last_words(tmp_path: Path) -> None:
    process = start(tmp_path, "print('no room left'); raise SystemExit(1)")
    for _ in range(MAX_RESTARTS):
        assert process.wait(time.monotonic() + PATIENCE_SECONDS)
        process.restart()
    assert process.wait(time.monotonic() + PATIENCE_SECONDS)
    with pytest.raises(ProcessFailedError, match=r"sleeper process ended 6 times(.|\n)*no room"):
        process.restart()


def test_a_long_log_is_set_aside_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.processes.managed.MAX_LOG_BYTES", 10)
    (tmp_path / "sleeper.log").write_text("0123456789 more")
    process = start(tmp_path, "print('new')")
    assert process.wait(time.monotonic() + PATIENCE_SECONDS)
    assert (tmp_path / "sleeper.log").read_text() == "new\n"
    assert (tmp_path / "sleeper.log.1").read_text() == "0123456789 more"


@pytest.mark.faults
@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux ends a child with its parent (prctl)"
)
def test_a_process_dies_with_a_parent_that_was_killed() -> None:
    code = (
        "import subprocess, sys, time\n"
        "from worker.processes.die_with_parent import dying_with_parent\n"
        f"child = subprocess.Popen(dying_with_parent([sys.executable, '-c', {SLEEPS!r}]),"
        " stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_for(lambda: not is_running(child), "the child to end")

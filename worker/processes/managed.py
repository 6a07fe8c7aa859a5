"""Child processes that are kept running, and stopped together."""

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from worker.processes.die_with_parent import dying_with_parent

MAX_RESTARTS = 5
RESTART_WINDOW_SECONDS = 60.0
MAX_LOG_BYTES = 10 * 2**20
POLL_SECONDS = 0.02
TAIL_LINES = 8


class ProcessFailedError(RuntimeError):
    """Raised when a process cannot be kept running; the message ends with its last words."""


@dataclass(frozen=True)
class Command:
    """What to run, under which name, with which variables added to the environment."""

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    pass_fds: Sequence[int] = ()


class ManagedProcess:
    """One child process, tied to this one, writing to a log file."""

    def __init__(self, command: Command, log_file: Path) -> None:
        self.command = command
        self.log_file = log_file
        self._starts: deque[float] = deque(maxlen=MAX_RESTARTS + 1)
        self._popen = self._start()

    @property
    def pid(self) -> int:
        """The process id; a restart changes it."""
        return self._popen.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._popen.poll() is not None

    def restart(self) -> None:
        """Start it again; raise `ProcessFailedError` if that happened too often lately."""
        now = time.monotonic()
        if len(self._starts) > MAX_RESTARTS and now - self._starts[0] < RESTART_WINDOW_SECONDS:
            raise self.failure(f"ended {len(self._starts)} times within a minute")
        self._popen = self._start()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, if it still runs."""
        self._popen.send_signal(number)

    def wait(self, deadline: float) -> bool:
        """Wait for its end until `deadline`, on the monotonic clock; True if it has ended."""
        while not self.has_ended and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        return self.has_ended

    def kill(self) -> None:
        """End it and whatever it started, at once."""
        if not self.has_ended:
            os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.wait()

    def failure(self, what: str) -> ProcessFailedError:
        """Return the error to raise when `what` happened to this process."""
        tail = self.log_file.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        lines = [f"The {self.command.name} process {what}. From {self.log_file}:", *tail]
        return ProcessFailedError("\n  ".join(lines))

    def _start(self) -> subprocess.Popen[bytes]:
        self._starts.append(time.monotonic())
        if self.log_file.exists() and self.log_file.stat().st_size > MAX_LOG_BYTES:
            self.log_file.replace(self.log_file.with_suffix(".log.1"))
        with self.log_file.open("ab") as log:
            return subprocess.Popen(
                dying_with_parent(list(self.command.argv)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.command.environment},
                pass_fds=tuple(self.command.pass_fds),
                # A Ctrl-C in the terminal is for us; we stop the children in order.
                start_new_session=True,
            )


def stop(processes: Sequence[ManagedProcess], seconds: float) -> None:
    """Ask all to end, wait for at most `seconds` together, and kill what is left."""
    deadline = time.monotonic() + seconds
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        process.wait(deadline)
        process.kill()

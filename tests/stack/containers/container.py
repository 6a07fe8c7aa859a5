"""A process in namespaces of its own: what container.sh makes of an image.

A read-only root, the user and the tmpfs that the image names, no capability.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from worker.processes.die_with_parent import dying_with_parent

CONTAINER = Path(__file__).with_name("container.sh")
NAMESPACES = ("--mount", "--pid", "--uts", "--ipc")
UNSHARE = ("unshare", *NAMESPACES, "--fork", "--kill-child", "--propagation", "private", "sh")
NO_PRIVILEGES = ("--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs")
RUN_SECONDS = 120


@dataclass(frozen=True)
class Image:
    """What a container gets from its image and this machine: user, variables, files."""

    user: int
    environment: Mapping[str, str]
    # What container.sh shows: (`ro` or `rw`, source, target), or (`tmpfs`, size, target).
    mounts: Sequence[tuple[str, str | Path, str | Path]]
    folder: str = "/"

    @property
    def env(self) -> list[str]:
        """Arguments of `env` that give a command the image's folder and variables only."""
        variables = (f"{name}={text}" for name, text in self.environment.items())
        return ["-i", f"--chdir={self.folder}", *variables]


def shown(*paths: str | Path) -> list[tuple[str, str | Path, str | Path]]:
    """Return mounts that show files and folders of this machine where they are, read-only."""
    return [("ro", path, path) for path in paths]


class Container:
    """A running command in namespaces of its own."""

    def __init__(
        self, name: str, image: Image, command: Sequence[str], folder: Path, network: int | None
    ) -> None:
        self._image = image
        self._log = folder / f"{name}.log"
        root = folder / f"{name}-root"
        root.mkdir(exist_ok=True)
        words = [name, root, image.user, *(part for mount in image.mounts for part in mount), "--"]
        argv = [*UNSHARE, CONTAINER, *words, *image.env, *command]
        if network:
            argv = ["nsenter", f"--net=/proc/{network}/ns/net", *argv]
        self._log.touch(mode=0o666)  # nginx opens it anew, by /dev/stdout
        self._log.chmod(0o666)
        with self._log.open("ab") as log:
            # Tied to this process: nothing outlives a test run that is killed.
            self._popen = subprocess.Popen(
                dying_with_parent([str(word) for word in argv]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait_until_made(self) -> None:
        """Wait until process 1 is the command's user, or has ended."""
        deadline = time.monotonic() + RUN_SECONDS
        while not self.has_ended and not self._is_made():
            assert time.monotonic() < deadline, self.log
            time.sleep(0.02)

    def _is_made(self) -> bool:
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except (ValueError, FileNotFoundError):  # not forked yet; already gone
            return False
        return f"Uid:\t{self._image.user}\t" in status

    @property
    def pid(self) -> int:
        """The id, outside, of the container's process 1."""
        task = Path(f"/proc/{self._popen.pid}/task/{self._popen.pid}")
        (child,) = (task / "children").read_text().split()
        return int(child)

    @property
    def has_ended(self) -> bool:
        """Whether its process 1 is gone."""
        return self._popen.poll() is not None

    @property
    def log(self) -> str:
        """What it has written."""
        return self._log.read_text()

    def wait(self, seconds: float = RUN_SECONDS) -> int:
        """Wait for its end; return the exit status."""
        return self._popen.wait(seconds)

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command in it, as `docker compose exec` and health checks do."""
        user = f"--reuid={self._image.user}", f"--regid={self._image.user}"
        argv = ["nsenter", f"--target={self.pid}", *NAMESPACES, "--net", "--root", "--wd"]
        argv += ["setpriv", *user, *NO_PRIVILEGES, "env", *self._image.env]
        argv += [*(f"{name}={text}" for name, text in environment.items()), *command]
        return subprocess.run(argv, capture_output=True, text=True, timeout=RUN_SECONDS)

    def pids(self) -> list[int]:
        """Return the ids, outside, of all its processes."""
        namespace = os.readlink(f"/proc/{self.pid}/ns/pid")
        entries = (entry for entry in Path("/proc").iterdir() if entry.name.isdecimal())
        return [int(entry.name) for entry in entries if _pid_namespace(entry) == namespace]

    def stop(self, how: signal.Signals, seconds: float) -> int:
        """Send process 1 a signal, as `docker stop` does; return its exit status.

        An assertion fails, and it is killed, if it is still there after `seconds`.
        """
        os.kill(self.pid, how)
        try:
            return self.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"still there {seconds} s after {how.name}: {self.log}") from None

    def kill(self) -> None:
        """End it and all of its processes at once."""
        if not self.has_ended:
            self._popen.kill()  # and with it process 1, and with that all others
            self._popen.wait()


def _pid_namespace(entry: Path) -> str | None:
    try:
        return os.readlink(entry / "ns" / "pid")
    except (FileNotFoundError, PermissionError):  # it has ended meanwhile; none of ours
        return None

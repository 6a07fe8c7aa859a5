"""An API process of the tests' own, and connections to it that misbehave."""

import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

# What the process is given, and may ask to be raised.
SOFT_LIMIT_OF_FILES = 128
# How long is waited for what has to happen, on a machine that may have much else to do.
PATIENCE_SECONDS = 30.0


class Door:
    """The address of a process that serves the API; opens connections that end with the test."""

    def __init__(self, port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.port = port
        self.process = process
        # Where it has its files, temporary ones too.
        self.folder = folder
        self._opened = ExitStack()

    def connect(self, sent: bytes = b"", *, receive_buffer: int | None = None) -> socket.socket:
        """Return a connection by which some bytes have been sent."""
        connection = self._opened.enter_context(socket.socket())
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(PATIENCE_SECONDS)
        connection.connect(("127.0.0.1", self.port))
        connection.sendall(sent)
        return connection

    def client(self, headers: Mapping[str, str] | None = None) -> httpx.Client:
        """Return an HTTP client that gives up in the end."""
        url = f"http://127.0.0.1:{self.port}"
        client = httpx.Client(
            base_url=url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False
        )
        return self._opened.enter_context(client)

    def hang_up(self) -> None:
        """Close every connection."""
        self._opened.close()


def num_bytes_to_read(connection: socket.socket) -> int:
    """Return how many bytes the server sends before it hangs up."""
    num_bytes = 0
    try:
        while chunk := connection.recv(2**16):
            num_bytes += len(chunk)
    except ConnectionResetError:
        pass
    return num_bytes


def seconds_open(connection: socket.socket) -> float:
    """Read until the server hangs up, and return how long that took."""
    began = time.monotonic()
    num_bytes_to_read(connection)
    return time.monotonic() - began


def is_open(connection: socket.socket) -> bool:
    """Return whether the server has neither said anything nor hung up."""
    return not select.select([connection], [], [], 0)[0]


def wait_for(condition: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} seconds for {what}"
        time.sleep(0.02)


def in_time(attempt: Callable[[], object], seconds: float) -> None:
    """Make an attempt that has to succeed if it takes less than some seconds.

    One that fails because the machine was busy, and took longer, says nothing: it is made again.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        began = time.monotonic()
        try:
            attempt()
        except (AssertionError, OSError, httpx.TransportError):
            if not began + seconds < time.monotonic() < deadline:
                raise
        else:
            return


@contextmanager
def opened(folder: Path, environment: Mapping[str, str]) -> Iterator[Door]:
    """Run `python -m service` on loopback with its files in `folder`."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        (folder / "api.log").open("wb") as log,
    ):
        process = subprocess.Popen(
            [
                "prlimit",
                f"--nofile={SOFT_LIMIT_OF_FILES}:",
                sys.executable,
                "-m",
                "service",
                "--fd",
                str(listening.fileno()),
            ],
            env={**os.environ, "TMPDIR": str(folder), **environment},
            pass_fds=[listening.fileno()],
            stderr=log,
        )
        door = Door(int(listening.getsockname()[1]), process, folder)
        try:
            door.client().get("/livez")  # waits in the socket until the process takes it
            yield door
        finally:
            door.hang_up()
            process.terminate()
            process.wait(30)

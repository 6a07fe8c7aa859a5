"""Servers of the tests' own on loopback, and clients of them."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from tests.waiting import PATIENCE_SECONDS


class Served:
    """The address of a server; opens connections that end with the test."""

    def __init__(self, port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.port = port
        self.process = process
        # Where it has its files and its log.
        self.folder = folder
        self._opened = ExitStack()

    def connect(
        self, sent: bytes = b"", *, port: int | None = None, receive_buffer: int | None = None
    ) -> socket.socket:
        """Return a connection by which some bytes have been sent."""
        connection = self._opened.enter_context(socket.socket())
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(PATIENCE_SECONDS)
        connection.connect(("127.0.0.1", port or self.port))
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


def answer_of(connection: socket.socket) -> bytes:
    """Return what the server sends before it hangs up."""
    answer = b""
    try:
        while chunk := connection.recv(2**16):
            answer += chunk
    except ConnectionResetError:
        pass
    return answer


@contextmanager
def served_api(folder: Path, environment: Mapping[str, str]) -> Iterator[Served]:
    """Run `python -m service` on loopback with its files in `folder`."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        (folder / "api.log").open("wb") as log,
    ):
        process = subprocess.Popen(
            [sys.executable, "-m", "service", "serve", "--fd", str(listening.fileno())],
            env={**os.environ, "TMPDIR": str(folder), **environment},
            pass_fds=[listening.fileno()],
            stderr=log,
        )
        api = Served(int(listening.getsockname()[1]), process, folder)
        try:
            api.client().get("/livez")  # waits in the socket until the process takes it
            yield api
        finally:
            api.hang_up()
            process.terminate()
            process.wait(PATIENCE_SECONDS)

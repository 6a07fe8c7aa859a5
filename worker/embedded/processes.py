"""The processes of an embedded service: what they run, in which order they start and stop."""

import socket
import sys
import threading
import time
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

import httpx
from sqlalchemy import URL

from service.db import schema
from service.settings import Authentication
from worker.embedded import key_secret, valkey
from worker.processes import threads
from worker.processes.managed import Command, ManagedProcess, stop
from worker.settings import WorkerSettings

START_SECONDS = 60.0
# More than a worker needs to hand its jobs back: the grace of a fit, and then some.
STOP_SECONDS = 10.0
POLL_SECONDS = 0.05


class EmbeddedProcesses:
    """Valkey, worker, API and dispatcher over one data folder."""

    def __init__(
        self,
        data_dir: Path,
        broker_socket: Path,
        listening: socket.socket,
        workers: int,
        *,
        require_keys: bool,
    ) -> None:
        self.url = _url(listening)
        self.requires_keys = require_keys or not _is_loopback(listening)
        self._logs = data_dir / "logs"
        self._broker_socket = broker_socket
        self._broker_folder = data_dir / "valkey"
        self._database_url = URL.create("sqlite", database=str(data_dir / "vnce.db"))
        environment = {
            **threads.environment(WorkerSettings.from_environment().threads_per_process),
            "VNCE_DATABASE_URL": self._database_url.render_as_string(),
            "VNCE_BROKER_URL": valkey.url(broker_socket),
            "VNCE_AUTHENTICATION": (
                Authentication.KEYS if self.requires_keys else Authentication.NONE
            ),
            "VNCE_CONCURRENCY": str(workers),
            "PYTHONUNBUFFERED": "1",
        }
        descriptor = listening.fileno()
        broker = valkey.command(broker_socket, self._broker_folder)
        api = [sys.executable, "-m", "worker.embedded", str(descriptor)]
        dispatcher = [sys.executable, "-m", "worker.dispatcher"]
        self._broker = Command("valkey", broker, environment)
        self._worker = Command("worker", [sys.executable, "-m", "worker"], environment)
        # Nobody else needs the secret.
        keyed = {**environment, "VNCE_KEY_SECRET": key_secret.of_folder(data_dir)}
        self._api = Command("api", api, keyed, pass_fds=[descriptor])
        self._dispatcher = Command("dispatcher", dispatcher, environment)
        # In the order of their start: the broker is the first.
        self._processes: list[ManagedProcess] = []

    def start(self, stopping: threading.Event) -> None:
        """Start all and return when the API answers, or when `stopping` is set.

        Raises `ProcessFailedError` if one of them ends or the API does not answer in time.
        """
        self._launch(self._broker)
        # The worker loads the numerical libraries while the rest is made ready.
        self._launch(self._worker)
        schema.upgrade(self._database_url.render_as_string())
        self._launch(self._api)
        self._wait_until(lambda: valkey.answers(self._broker_socket), stopping)
        self._launch(self._dispatcher)
        self._wait_until(self._api_answers, stopping)

    def restart_ended(self) -> list[str]:
        """Start again what has ended by itself and return the names.

        Raises `ProcessFailedError` if one of them keeps ending.
        """
        ended = [process for process in self._processes if process.has_ended]
        for process in ended:
            process.restart()
        return [process.command.name for process in ended]

    def stop(self) -> None:
        """Stop everything; the broker last, since the others talk to it."""
        broker, others = self._processes[:1], self._processes[1:]
        stop(others, STOP_SECONDS)
        stop(broker, STOP_SECONDS)

    def _launch(self, command: Command) -> None:
        log_file = self._logs / f"{command.name}.log"
        self._processes.append(ManagedProcess(command, log_file))

    def _wait_until(self, is_ready: Callable[[], bool], stopping: threading.Event) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not is_ready() and not stopping.wait(POLL_SECONDS):
            for process in self._processes:
                if process.has_ended:
                    raise process.failure(f"did not start{self._way_out(process)}")
            if time.monotonic() > deadline:
                raise self._processes[-1].failure(f"was not ready in {START_SECONDS:.0f} seconds")

    def _way_out(self, process: ManagedProcess) -> str:
        if process.command is not self._broker:
            return ""
        # As after a power cut, which its own advice does not know to be harmless here.
        return (
            f". If its files are damaged, delete the folder {self._broker_folder}: jobs that wait "
            "are sent again"
        )

    def _api_answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/livez", timeout=1, trust_env=False).is_success
        except httpx.TransportError:
            return False


def _is_loopback(listening: socket.socket) -> bool:
    return ip_address(listening.getsockname()[0]).is_loopback


def _url(listening: socket.socket) -> str:
    """Return a URL at which this machine reaches the socket."""
    host, port = listening.getsockname()[:2]
    address = ip_address(host)
    if address.is_unspecified:
        host = "127.0.0.1" if address.version == 4 else "::1"
    return f"http://{host}:{port}" if address.version == 4 else f"http://[{host}]:{port}"

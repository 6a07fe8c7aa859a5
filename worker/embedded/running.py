"""The whole service on one machine: SQLite, Valkey, API, dispatcher and workers in one command.

`serve` runs it until a signal says to stop. `running_service` runs the same in a process of its
own for the body of a `with` statement. Every process is tied to the one that runs `serve`: on
Linux none of them outlives it, however it ends.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from alembic.util import CommandError
from sqlalchemy.exc import SQLAlchemyError

from worker.embedded import folder_lock
from worker.embedded.processes import EmbeddedProcesses
from worker.embedded.serve_error import ServeError
from worker.processes.managed import ProcessFailedError

WATCH_SECONDS = 0.2
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# More than `EmbeddedProcesses.stop` may take.
STOP_SECONDS = 30.0


@dataclass(frozen=True)
class RunningService:
    """A service that answers at `url` and keeps everything in `data_dir`."""

    url: str
    data_dir: str
    # The process that runs `serve`.
    pid: int
    # Whether requests need an API key.
    requires_keys: bool


def serve(
    data_dir: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    require_keys: bool = False,
    on_ready: Callable[[RunningService], None] = lambda service: None,
    say: Callable[[str], None] = lambda message: None,
    stopping: threading.Event | None = None,
) -> None:
    """Run the service until SIGINT, SIGTERM or SIGHUP, or until `stopping` is set.

    `data_dir` holds everything that is kept and is made if need be; `port` 0 takes a free one;
    `workers` jobs run at a time. API keys are required with `require_keys`, and wherever the
    address is not a loopback one. `on_ready` is called once the API answers, `say` with what else
    an operator should read. Call it from the main thread.

    Raises `ServeError` if the folder or the port cannot be had, or if a process does not start or
    keeps ending. By the time it returns or raises, whatever was started has been stopped.
    """
    stopping = stopping or threading.Event()
    data_dir = data_dir.resolve()
    _make_folders(data_dir)
    try:
        with ExitStack() as stack:
            stack.enter_context(_signals_set(stopping))
            stack.enter_context(folder_lock.held(data_dir))
            listening = stack.enter_context(_listening_socket(host, port))
            # Not in the data folder: its path may be too long for a socket's name.
            sockets = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vnce-")))
            processes = EmbeddedProcesses(
                data_dir, sockets / "valkey", listening, workers, require_keys=require_keys
            )
            stack.callback(processes.stop)
            processes.start(stopping)
            if not stopping.is_set():
                on_ready(
                    RunningService(
                        processes.url, str(data_dir), os.getpid(), processes.requires_keys
                    )
                )
            while not stopping.wait(WATCH_SECONDS):
                for name in processes.restart_ended():
                    say(f"The {name} process had ended and was started again.")
    except ProcessFailedError as error:
        raise ServeError(str(error)) from error
    except (SQLAlchemyError, CommandError) as error:
        reason = getattr(error, "orig", error)
        raise ServeError(
            f"The database in {data_dir} cannot be used: {reason}. If it was made by a newer "
            "version, run that one; else name another folder, or bring back a copy."
        ) from error


@contextmanager
def running_service(
    data_dir: Path | None = None,
    *,
    port: int = 0,
    workers: int = 1,
    require_keys: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Iterator[RunningService]:
    """Run `serve` in a process of its own for the body; it ends with this process at the latest.

    Without `data_dir` everything is kept in a temporary folder and removed at the end, however this
    process ends. `environment` adds settings such as `VNCE_LEASE_SECONDS`. Raises `ServeError`.
    """
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "worker.embedded.running",
                    "" if data_dir is None else str(data_dir),
                    str(port),
                    str(workers),
                    json.dumps(require_keys),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **(environment or {})},
                # A Ctrl-C in the terminal is for the caller, who then leaves this block.
                start_new_session=True,
            )
        )
        stack.callback(_stop, process)
        assert process.stdout is not None
        answer = json.loads(process.stdout.readline() or '{"error": "The service did not start."}')
        if "error" in answer:
            raise ServeError(answer["error"])
        yield RunningService(**answer)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()  # its children are tied to it


def _make_folders(data_dir: Path) -> None:
    try:
        # For nobody else on this machine; a folder that was there keeps its permissions.
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (data_dir / "logs", data_dir / "valkey"):
            folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ServeError(
            f"Cannot keep data in {data_dir}: {error.strerror}. Name another folder."
        ) from error


def _listening_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise ServeError(
            f"Cannot listen on {host}, port {port}: {error.strerror}. Stop what listens there, or "
            "choose another port (0 takes a free one)."
        ) from error


@contextmanager
def _signals_set(stopping: threading.Event) -> Iterator[None]:
    previous = {
        number: signal.signal(number, lambda *arguments: stopping.set()) for number in STOP_SIGNALS
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _set_at_end_of_input(stopping: threading.Event) -> None:
    # os.read: a thread that waits in sys.stdin would hold its lock when the interpreter ends.
    while os.read(sys.stdin.fileno(), 1):
        pass
    stopping.set()


def main() -> None:
    """Serve `running_service`: answer one line of JSON, stop when standard input ends."""
    data_dir, port, workers, require_keys = sys.argv[1:]
    stopping = threading.Event()
    threading.Thread(target=_set_at_end_of_input, args=[stopping], daemon=True).start()
    try:
        with ExitStack() as stack:
            # Made here: whoever asked for the service may be killed, and could not remove it.
            if not data_dir:
                temporary = tempfile.TemporaryDirectory(prefix="vnce-data-")
                data_dir = stack.enter_context(temporary)
            serve(
                Path(data_dir),
                port=int(port),
                workers=int(workers),
                require_keys=json.loads(require_keys),
                on_ready=lambda service: print(json.dumps(asdict(service)), flush=True),
                stopping=stopping,
            )
    except ServeError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main()

"""The launcher: what it starts, refuses, restarts and leaves behind."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.db import schema
from tests.waiting import wait_for
from worker.embedded.running import RunningService, running_service
from worker.embedded.serve_error import ServeError

pytestmark = pytest.mark.integration

ProcessesOf = Callable[[RunningService], Any]
Running = Callable[[list[int]], list[int]]


def readiness(url: str) -> dict[str, Any]:
    answer: dict[str, Any] = httpx.get(f"{url}/readyz", timeout=10, trust_env=False).json()
    return answer


def test_a_service_is_ready_is_used_with_a_key_made_in_its_folder_and_leaves_its_data_alone(
    tmp_path: Path, processes_of: ProcessesOf, running: Running
) -> None:
    with running_service(tmp_path / "data", require_keys=True) as service:
        wait_for(lambda: readiness(service.url)["status"] == "ready")
        # The launcher, Valkey, API, dispatcher, worker and its one child.
        wait_for(lambda: len(processes_of(service).all()) == 6)
        pids = processes_of(service).all()
        assert running(pids) == pids

        assert service.requires_keys
        assert httpx.get(f"{service.url}/v1/jobs", trust_env=False).status_code == 401
        vnce = [str(Path(sys.executable).with_name("vnce"))]
        create = [*vnce, "keys", "create", "test", "--data", service.data_dir]
        made = subprocess.run(create, check=True, capture_output=True, text=True, timeout=60)
        key = {"VNCE_API_KEY": made.stdout.strip()}
        listing = [*vnce, "jobs", "--url", service.url, "--json"]
        for environment, status in (({}, 1), (key, 0)):
            done = subprocess.run(
                listing, env={**os.environ, **environment}, capture_output=True, timeout=60
            )
            assert done.returncode == status, done.stderr
    assert running(pids) == []
    assert (tmp_path / "data" / "vnce.db").stat().st_size > 0
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


@pytest.mark.faults
@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux ends a child with its parent (prctl)"
)
def test_what_ends_is_started_again_and_no_process_outlives_a_launcher_that_was_killed(
    tmp_path: Path, processes_of: ProcessesOf, running: Running
) -> None:
    with (
        # What a killed launcher leaves: an empty socket.
        tempfile.TemporaryDirectory() as sockets,
        running_service(tmp_path / "data", environment={"TMPDIR": sockets}) as service,
    ):
        view = processes_of(service)
        for mark in ("embedded.api", "valkey"):
            killed = view.one(mark)
            os.kill(killed, signal.SIGKILL)

            def is_back(mark: str = mark, killed: int = killed) -> bool:
                try:
                    is_ready = readiness(service.url)["status"] == "ready"
                except httpx.TransportError:
                    return False
                return is_ready and view.maybe_one(mark) not in (None, killed)

            wait_for(is_back)
        wait_for(lambda: len(view.all()) == 6)
        pids = view.all()
        os.kill(service.pid, signal.SIGKILL)
        wait_for(lambda: running(pids) == [])


@pytest.mark.faults
def test_the_launcher_stops_and_its_temporary_folder_goes_when_who_asked_for_it_is_killed(
    running: Running, processes_of: ProcessesOf
) -> None:
    code = (
        "import time\n"
        "from worker.embedded.running import running_service\n"
        "with running_service() as service:\n"
        "    print(service.pid, service.data_dir, flush=True)\n"
        "    time.sleep(120)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as asking:
        assert asking.stdout is not None
        launcher, folder = asking.stdout.readline().decode().split()
        pids = processes_of(RunningService("", "", int(launcher), requires_keys=False)).all()
        assert Path(folder).is_dir()
        asking.kill()
    wait_for(lambda: running(pids) == [])
    assert not Path(folder).exists()


def test_a_queue_that_cannot_be_read_is_to_be_deleted(tmp_path: Path) -> None:
    queue = tmp_path / "data" / "valkey" / "appendonlydir"
    queue.mkdir(parents=True)
    (queue / "appendonly.aof.manifest").write_text("file appendonly.aof.1.incr.aof seq 1 type i\n")
    (queue / "appendonly.aof.1.incr.aof").write_bytes(bytes(4096))  # as a power cut may leave it
    with (
        pytest.raises(ServeError, match=f"delete the folder {tmp_path}/data/valkey"),
        running_service(tmp_path / "data"),
    ):
        pass


def test_a_data_folder_serves_one_service_at_a_time(live_service: RunningService) -> None:
    with (
        pytest.raises(
            ServeError, match=f"in use by another `vnce serve`, process {live_service.pid}"
        ),
        running_service(Path(live_service.data_dir)),
    ):
        pass


def test_a_taken_port_is_refused_with_advice(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(
                ServeError, match=f"port {port}: Address already in use(.|\n)*another port"
            ),
            running_service(tmp_path / "data", port=port),
        ):
            pass


def test_a_data_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ServeError, match=r"Cannot keep data in .*: Not a directory"),
        running_service(tmp_path / "file" / "data"),
    ):
        pass


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda file: file.write_bytes(b"no database" * 1000), "file is not a database"),
        (lambda file: pretend_it_is_newer(file), "Can't locate revision"),
    ],
)
def test_a_database_that_cannot_be_used_is_refused_and_left_as_it_is(
    tmp_path: Path, spoil: Callable[[Path], None], reason: str
) -> None:
    file = tmp_path / "vnce.db"
    spoil(file)
    content = file.read_bytes()
    with pytest.raises(ServeError, match=reason), running_service(tmp_path):
        pass
    assert file.read_bytes() == content


def pretend_it_is_newer(file: Path) -> None:
    schema.upgrade(f"sqlite:///{file}")
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'of tomorrow'")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

"""A live service with short leases, a client that speaks its API, and a view of its processes."""

import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.waiting import wait_for
from worker.embedded.running import RunningService, running_service

SHORT_LEASES = {
    "VNCE_LEASE_SECONDS": "2",
    "VNCE_HEARTBEAT_SECONDS": "0.4",
    "VNCE_REAPER_SECONDS": "0.4",
    "VNCE_RESEND_SECONDS": "1",
    "VNCE_CANCEL_GRACE_SECONDS": "1",
    "VNCE_PROGRESS_SECONDS": "0.1",
}
FINAL = ("succeeded", "failed", "cancelled")


class Api:
    """The part of the API that these tests speak."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=20, trust_env=False)

    def upload(self, table: np.ndarray) -> str:
        """Upload a table as CSV, NaN as an empty cell; return the data set's id."""
        text = io.StringIO()
        np.savetxt(text, table, delimiter=",", fmt="%.17g", comments="", header=names(table))
        content = text.getvalue().replace("nan", "").encode()
        answer = self.http.post(
            "/v1/datasets",
            params={"name": "example", "format": "csv"},
            content=content,
            headers={"Content-Type": "application/octet-stream"},
        )
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def submit(self, dataset_id: str, **estimator: Any) -> str:
        """Submit an estimation with a fixed seed; return the job's id."""
        body = {
            "kind": "estimation",
            "dataset_id": dataset_id,
            "estimator": {"kind": "vnce", **estimator},
            "seed": 7,
        }
        answer = self.http.post("/v1/jobs", json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def job(self, job_id: str) -> dict[str, Any]:
        """Return the job as it stands."""
        job: dict[str, Any] = self.http.get(f"/v1/jobs/{job_id}").raise_for_status().json()
        return job

    def wait(self, job_id: str, *states: str) -> dict[str, Any]:
        """Return the job once it is in one of the states."""

        def reached() -> dict[str, Any] | None:
            job = self.job(job_id)
            return job if job["state"] in states else None

        return wait_for(reached, f"{job_id} to be {states}")

    def wait_until_fitting(self, job_id: str) -> dict[str, Any]:
        """Return the job once its fit has reported progress."""

        def fitting() -> dict[str, Any] | None:
            job = self.job(job_id)
            assert job["state"] not in FINAL, job
            progress = job["progress"]
            return job if progress and progress["stage"] not in ("prepare", "export") else None

        return wait_for(fitting, f"the fit of {job_id}")

    def result(self, job_id: str) -> dict[str, Any]:
        """Return the result document."""
        answer = self.http.get(f"/v1/jobs/{job_id}/result").raise_for_status()
        document: dict[str, Any] = answer.json()
        return document

    def cancel(self, job_id: str) -> None:
        """Ask for the job's end."""
        self.http.put(f"/v1/jobs/{job_id}/cancellation").raise_for_status()


def names(table: np.ndarray) -> str:
    return ",".join(f"v{i}" for i in range(table.shape[1]))


class Processes:
    """The processes of a running service, by what they do, as the kernel sees them."""

    def __init__(self, service: RunningService) -> None:
        self._root = service.pid

    def all(self) -> list[int]:
        """Return every descendant's id."""
        found = [self._root]
        for pid in found:
            found.extend(children(pid))
        return found

    def maybe_one(self, mark: str) -> int | None:
        """Return the child whose command line contains `mark`, or None while there is none."""
        found = [pid for pid in children(self._root) if mark in command_line(pid)]
        return found[0] if found else None

    def one(self, mark: str) -> int:
        """Return the child whose command line contains `mark`."""
        pid = self.maybe_one(mark)
        assert pid is not None, f"no process runs {mark!r}"
        return pid

    @property
    def worker(self) -> int:
        """Return the worker's parent process."""
        return self.one("-m worker ")

    def busy_child(self) -> int:
        """Return the worker's child that computes; on a busy machine it may take long to tell."""
        before = {pid: processor_seconds(pid) for pid in children(self.worker)}

        def busiest() -> int | None:
            time.sleep(0.3)
            used = {pid: processor_seconds(pid) - before[pid] for pid in before}
            pid = max(used, key=lambda pid: used[pid])
            return pid if used[pid] >= 0.1 else None

        return wait_for(busiest, "a child that computes")


def children(pid: int) -> list[int]:
    try:
        lists = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    except FileNotFoundError:
        return []
    return [int(child) for text in lists for child in text.split()]


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture(scope="session")
def small_table() -> np.ndarray:
    """Return a table with a fifth of its cells missing that is fitted in a moment."""
    rng = np.random.default_rng(20260101)
    table = np.abs(rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5)))
    table[rng.random(table.shape) < 0.2] = np.nan
    return table


@pytest.fixture(scope="session")
def large_table() -> np.ndarray:
    """Return a table whose fit can be made to take as long as a test needs."""
    rng = np.random.default_rng(20260102)
    table = np.abs(rng.normal(size=(2000, 20)) @ rng.normal(size=(20, 20)))
    table[rng.random(table.shape) < 0.3] = np.nan
    return table


@pytest.fixture
def open_api() -> Iterator[Callable[[str], Api]]:
    """Yield a function that opens a client of the service at a URL."""
    opened: list[Api] = []

    def open_(url: str) -> Api:
        opened.append(Api(url))
        return opened[-1]

    yield open_
    for api in opened:
        api.http.close()


@pytest.fixture(scope="package")
def live_service() -> Iterator[RunningService]:
    """Yield a service with two worker processes, shared by the tests of this process."""
    with running_service(workers=2, environment=SHORT_LEASES) as service:
        yield service


@pytest.fixture
def api(live_service: RunningService) -> Iterator[Api]:
    """Yield a client of the live service; the jobs that a test leaves behind are cancelled."""
    client = Api(live_service.url)
    with client.http:
        yield client
        for state in ("queued", "running"):
            for job in client.http.get("/v1/jobs", params={"state": state}).json()["items"]:
                client.cancel(job["id"])
                client.wait(job["id"], *FINAL)


@pytest.fixture
def processes(live_service: RunningService) -> Processes:
    """Return a view of the live service's processes."""
    return Processes(live_service)


@pytest.fixture
def processes_of() -> Callable[[RunningService], Processes]:
    """Return what makes a view of another service's processes."""
    return Processes


@pytest.fixture
def running() -> Callable[[list[int]], list[int]]:
    """Return a function that keeps those process ids that still run."""
    return lambda pids: [pid for pid in pids if is_running(pid)]

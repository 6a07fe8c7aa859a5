"""What an operator sees of a running service: logs, metrics, readiness, status."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from tests.waiting import wait_for
from worker.cli import app
from worker.embedded.running import RunningService
from worker.processes.managed import Command, ManagedProcess

pytestmark = pytest.mark.integration

MARK = "hunter2"


def log_lines(service: RunningService, process: str) -> list[dict[str, Any]]:
    file = Path(service.data_dir) / "logs" / f"{process}.log"
    return [json.loads(line) for line in file.read_text().splitlines()]


def scrape(api: Any) -> dict[str, float]:
    """Return the sums of all series by the names of their samples."""
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(api.http.get("/metrics").text):
        for sample in family.samples:
            sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
    return sums


def test_a_job_is_followed_by_its_request_from_the_api_to_its_worker(
    api: Any, live_service: RunningService, small_table: np.ndarray
) -> None:
    body = {
        "kind": "estimation",
        "dataset_id": api.upload(small_table),
        "estimator": {"kind": "vnce", "penalty": 1.0},
    }
    answer = api.http.post("/v1/jobs", json=body)
    job_id, request_id = answer.json()["id"], answer.headers["X-Request-ID"]
    api.wait(job_id, "succeeded")

    of_request = [
        line for line in log_lines(live_service, "api") if line.get("request_id") == request_id
    ]
    assert {line["event"] for line in of_request} == {f"job {job_id}: accepted", "request answered"}
    assert {line.get("route") for line in of_request} == {None, "/v1/jobs"}

    def of_job() -> list[dict[str, Any]]:
        # A message that came twice finds nothing to do, which is no attempt.
        lines = [
            line
            for line in log_lines(live_service, "worker")
            if line.get("job_id") == job_id and "attempt" in line
        ]
        return lines if len(lines) >= 2 else []

    lines = wait_for(of_job, "the worker's lines")
    assert {(line["request_id"], line["attempt"]) for line in lines} == {(request_id, 1)}
    assert lines[0]["event"].endswith("attempt 1 begins")
    assert lines[-1]["event"].endswith("attempt 1 succeeded")


def test_what_clients_send_reaches_no_log(api: Any, live_service: RunningService) -> None:
    key = {"Authorization": f"Bearer vnce_0123456789ab_{MARK}"}
    refused = api.http.get("/v1/jobs", headers=key)
    assert refused.status_code == 401
    table = {"content": f"{MARK},b\n{MARK},{MARK}\n", "headers": {"Cookie": MARK}}
    unreadable = api.http.post("/v1/datasets", params={"name": MARK}, **table)
    assert unreadable.is_client_error
    last = unreadable.headers["X-Request-ID"]
    wait_for(lambda: last in logs_of(live_service), "the line of the last request")
    assert refused.headers["X-Request-ID"] in logs_of(live_service)
    assert MARK not in logs_of(live_service)


def logs_of(service: RunningService) -> str:
    """Return the text of all logs."""
    files = (Path(service.data_dir) / "logs").iterdir()
    return "".join(file.read_text() for file in files)


def test_a_job_is_counted_when_it_has_ended(api: Any, small_table: np.ndarray) -> None:
    before = scrape(api)
    api.wait(api.submit(api.upload(small_table), penalty=1.0), "succeeded")
    after = scrape(api)
    for name in (
        "vnce_jobs_submitted_total",
        "vnce_job_attempts_total",
        "vnce_jobs_finished_total",
        "vnce_fit_seconds_count",
    ):
        assert after[name] == before.get(name, 0.0) + 1, name
    assert after["vnce_fit_seconds_sum"] > before.get("vnce_fit_seconds_sum", 0.0)


def test_workers_are_seen_with_their_memory_and_the_job_at_hand(
    api: Any, large_table: np.ndarray
) -> None:
    job_id = api.submit(api.upload(large_table), max_iter=500, tol=1e-12)

    def at_work() -> list[dict[str, Any]]:
        processes = api.http.get("/v1/status").json()["processes"]
        return [process for process in processes if process["job_id"] == job_id]

    (worker,) = wait_for(at_work, "a worker that names its job")
    assert worker["kind"] == "worker"
    assert worker["memory_bytes"] > 100 * 2**20  # torch alone is more
    assert Path(f"/proc/{worker['pid']}").exists()
    api.cancel(job_id)


def test_readiness_misses_what_was_stopped_and_finds_it_again(
    api: Any, live_service: RunningService, processes: Any
) -> None:
    def readiness() -> dict[str, Any]:
        answer: dict[str, Any] = api.http.get("/readyz").json()
        return answer

    wait_for(lambda: readiness()["status"] == "ready", "a ready service")
    assert CliRunner().invoke(app, ["status", "--url", live_service.url]).exit_code == 0
    # The worker's parent: its children go on and tell, but no longer of a worker that takes jobs.
    with stopped(processes.one("worker.dispatcher")), stopped(processes.worker):
        wait_for(lambda: readiness()["dispatchers"] == 0, "the dispatcher to be missed")
        wait_for(lambda: readiness()["workers"] == 0, "the workers to be missed")
        assert readiness()["status"] == "degraded"
        result = CliRunner().invoke(app, ["status", "--url", live_service.url])
        assert result.exit_code == 1
        assert "No dispatcher is running" in result.output
        assert "No worker is live" in result.output
    wait_for(lambda: readiness()["status"] == "ready", "the dispatcher to be found again")


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("module", ["worker", "worker.dispatcher"])
def test_a_process_that_reaches_neither_database_nor_broker_logs_no_password(
    module: str, tmp_path: Path
) -> None:
    environment = {
        "VNCE_DATABASE_URL": f"postgresql+psycopg://vnce:{MARK}@127.0.0.1:1/vnce",
        "VNCE_BROKER_URL": f"redis://:{MARK}@127.0.0.1:1/0",
        "PGPASSWORD": MARK,
    }
    log = tmp_path / "log"
    process = ManagedProcess(Command(module, [sys.executable, "-m", module], environment), log)
    try:
        wait_for(lambda: "127.0.0.1:1" in log.read_text() or "port 1" in log.read_text(), module)
    finally:
        process.kill()
    assert MARK not in log.read_text()

"""`vnce status` shows what the service says, and its exit status tells a script."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from typer.testing import Result

from worker.cli.client import Client

Vnce = Callable[..., Result]
PROCESS = {
    "id": "process_1",
    "kind": "worker",
    "host": "host-1",
    "pid": 12,
    "version": "1.0",
    "started_at": "2026-01-02T03:04:05Z",
    "heartbeat_age_seconds": 3.2,
    "is_live": True,
    "memory_bytes": 300 * 2**20,
    "job_id": "job_1",
}
READY = {
    "version": "1.0",
    "readiness": {
        "status": "ready",
        "database": "current",
        "broker": "reachable",
        "workers": 1,
        "dispatchers": 1,
    },
    "queue": {
        "queued": 2,
        "running": 1,
        "split": 0,
        "oldest_queued_seconds": 7300.0,
        "expired_leases": 0,
        "outbox": 0,
        "oldest_outbox_seconds": 0.0,
    },
    "processes": [PROCESS],
}


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], None]:
    """Return a function that lets the service answer with a document."""

    def set_answer(document: dict[str, Any]) -> None:
        transport = httpx.MockTransport(lambda request: httpx.Response(200, json=document))
        http = httpx.Client(transport=transport, base_url="http://service")
        monkeypatch.setattr(Client, "connect", lambda url, api_key: Client(http))

    return set_answer


def test_a_ready_service_is_shown_with_queue_and_processes(vnce: Vnce, answer: Any) -> None:
    answer(READY)
    result = vnce("status")
    assert result.exit_code == 0
    assert "ready" in result.output
    assert "2 queued, the oldest for 2 h, 1 running" in result.output
    for cell in ("host-1:12", "3 s ago", "300 MiB", "job_1"):
        assert cell in result.output


def test_json_is_what_the_service_says(vnce: Vnce, answer: Any) -> None:
    answer(READY)
    assert json.loads(vnce("status", "--json").output) == READY


def test_what_is_missing_is_said_and_fails(vnce: Vnce, answer: Any) -> None:
    readiness = READY["readiness"] | {"status": "degraded", "workers": 0}
    lost = PROCESS | {"is_live": False, "heartbeat_age_seconds": 150.0, "memory_bytes": None}
    answer(READY | {"readiness": readiness, "processes": [lost]})
    result = vnce("status")
    assert result.exit_code == 1
    assert "No worker is live" in result.output
    assert "LOST 2 min ago" in result.output


def test_a_broker_that_refuses_is_named_as_what_workers_wait_for(vnce: Vnce, answer: Any) -> None:
    readiness = READY["readiness"] | {"status": "degraded", "broker": "refusing", "workers": 0}
    answer(READY | {"readiness": readiness, "processes": []})
    result = vnce("status")
    assert result.exit_code == 1
    assert "broker refusing" in result.output
    assert "The broker takes no messages" in result.output


def test_a_service_without_its_database_is_shown_too(vnce: Vnce, answer: Any) -> None:
    unavailable = {"status": "unavailable", "database": "unreachable", "broker": "unreachable"}
    readiness = {**unavailable, "workers": None, "dispatchers": None}
    answer(READY | {"readiness": readiness, "queue": None, "processes": None})
    result = vnce("status")
    assert result.exit_code == 1
    assert "database unreachable" in result.output

"""Alive, ready, degraded or unavailable."""

from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from redis.exceptions import ResponseError
from sqlalchemy import text

from service.app import THREADS, create_app
from service.db.database import Database
from service.monitoring import heartbeats
from service.monitoring.heartbeats import ProcessIdentity
from service.monitoring.records import ProcessKind
from service.settings import Settings
from tests.waiting import PATIENCE_SECONDS


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Return the database of the client."""
    return sqlite_url


def test_process_that_answers_is_alive(client: TestClient) -> None:
    assert client.get("/livez").json() == {"status": "alive"}


def test_a_process_whose_threads_all_wait_is_alive(client: TestClient, database: Database) -> None:
    job = {"kind": "simulation", "graph": "ring"}
    with ThreadPoolExecutor(THREADS + 1) as pool:
        with database.transaction() as session:
            session.execute(text("SELECT 1"))  # SQLite has one writer at a time: this one
            submissions = [pool.submit(client.post, "/v1/jobs", json=job) for _ in range(THREADS)]
            assert not wait(submissions, timeout=1).done
            for path in ("/livez", "/v1/version"):
                assert (
                    pool.submit(client.get, path).result(timeout=PATIENCE_SECONDS).status_code
                    == 200
                )
        assert {submission.result().status_code for submission in submissions} == {202}


def test_version_is_told(client: TestClient) -> None:
    assert client.get("/v1/version").json()["version"]


def test_broker_trouble_and_missing_processes_only_degrade(client: TestClient) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "degraded",
        "database": "current",
        "broker": "unreachable",
        "workers": 0,
        "dispatchers": 0,
    }


def test_a_broker_that_takes_no_messages_only_degrades(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(broker: Any, *arguments: Any) -> None:
        raise ResponseError("OOM command not allowed")

    monkeypatch.setattr("redis.Redis.llen", refuse)
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert (answer.json()["status"], answer.json()["broker"]) == ("degraded", "refusing")
    assert "vnce_broker_up 0.0" in client.get("/metrics").text


@pytest.mark.parametrize(
    ("kinds", "status"),
    [
        ([ProcessKind.WORKER, ProcessKind.DISPATCHER], "ready"),
        ([ProcessKind.WORKER], "degraded"),
        ([ProcessKind.DISPATCHER], "degraded"),
    ],
)
def test_a_worker_and_a_dispatcher_are_needed_to_be_ready(
    client: TestClient,
    database: Database,
    kinds: list[ProcessKind],
    status: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for command in ("llen", "lpushx"):
        monkeypatch.setattr(f"redis.Redis.{command}", lambda broker, *arguments: 0)
    with database.transaction() as session:
        for kind in kinds:
            identity = ProcessIdentity(id=kind, kind=kind, host="", pid=1, version="")
            heartbeats.beat(session, identity, memory_bytes=None, job_id=None)
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert (answer.json()["status"], answer.json()["broker"]) == (status, "reachable")
    assert answer.json()["workers"] == kinds.count(ProcessKind.WORKER)


def test_tables_of_another_version_are_not_ready(client: TestClient, database: Database) -> None:
    with database.transaction() as session:
        session.execute(text("UPDATE alembic_version SET version_num = 'older'"))
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["database"] == "not-migrated"


def test_database_that_does_not_answer_is_not_ready(settings: Settings) -> None:
    nowhere = "postgresql+psycopg://nobody@127.0.0.1:1/nothing"
    app = create_app(settings.model_copy(update={"database_url": nowhere}))
    answer = TestClient(app).get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["database"] == "unreachable"
    assert answer.json()["workers"] is None


def test_empty_database_is_not_ready(settings: Settings, tmp_path: Path) -> None:
    empty = f"sqlite:///{tmp_path / 'empty.db'}"
    with TestClient(create_app(settings.model_copy(update={"database_url": empty}))) as client:
        answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["database"] == "not-migrated"


@pytest.mark.parametrize("path", ["/v1/model-kinds", "/v1/estimator-kinds"])
def test_kinds_come_with_schema_and_defaults(client: TestClient, path: str) -> None:
    for item in client.get(path).json()["items"]:
        assert item["defaults"]["kind"] == item["kind"]
        assert set(item["json_schema"]["properties"]) == set(item["defaults"])
        assert item["use_when"]

"""The service at a glance, whatever is amiss."""

import pytest
from fastapi.testclient import TestClient

from service.app import create_app
from service.db.database import Database
from service.monitoring import heartbeats
from service.monitoring.heartbeats import ProcessIdentity
from service.monitoring.records import ProcessKind
from service.settings import Settings


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Return the database of the client."""
    return sqlite_url


def test_processes_are_shown_with_their_jobs(client: TestClient, database: Database) -> None:
    worker = ProcessIdentity("process_1", ProcessKind.WORKER, host="here", pid=12, version="1.0")
    with database.transaction() as session:
        heartbeats.beat(session, worker, memory_bytes=1000, job_id="job_1")
    status = client.get("/v1/status").json()
    (process,) = status["processes"]
    assert process.pop("started_at").endswith("Z")
    assert process.pop("heartbeat_age_seconds") < 9
    assert process == {
        "id": "process_1",
        "kind": "worker",
        "host": "here",
        "pid": 12,
        "version": "1.0",
        "is_live": True,
        "memory_bytes": 1000,
        "job_id": "job_1",
    }
    assert status["readiness"] == client.get("/readyz").json()
    assert status["version"] == client.get("/v1/version").json()["version"]


def test_an_empty_queue_has_no_age(client: TestClient) -> None:
    queue = client.get("/v1/status").json()["queue"]
    assert set(queue.values()) == {0}


def test_without_a_database_the_rest_is_shown(settings: Settings) -> None:
    nowhere = "postgresql+psycopg://nobody@127.0.0.1:1/nothing"
    app = create_app(settings.model_copy(update={"database_url": nowhere}))
    answer = TestClient(app).get("/v1/status")
    assert answer.status_code == 200
    assert answer.json()["readiness"]["status"] == "unavailable"
    assert (answer.json()["queue"], answer.json()["processes"]) == (None, None)

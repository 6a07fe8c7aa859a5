"""A tenant stores no more than it may, and others are not concerned."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from service.app import create_app
from service.commands import quota as quota_command
from service.db import blobs
from service.db.blobs import BlobRecord
from service.db.database import Database
from service.jobs.result_records import ArtefactRecord
from service.results import quota
from service.settings import Settings

MakeKey = Callable[..., dict[str, str]]
TABLE = b"a,b\n" + b"1,2\n3,1\n2,<5\n" * 1000
JOB = {"kind": "simulation", "graph": "ring", "n_variables": 3, "n_rows": 10, "seed": 1}
# One data set fits, with what was read from it, and a second does not.
MOST_BYTES = int(1.9 * len(TABLE))


@pytest.fixture
def keyed_settings(keyed_settings: Settings, database_url: str) -> Settings:
    """Return settings that ask for keys and let a tenant store little."""
    changes = {"max_stored_bytes": MOST_BYTES, "database_url": database_url}
    return keyed_settings.model_copy(update=changes)


@pytest.fixture
def client(keyed_settings: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(keyed_settings), raise_server_exceptions=False) as opened:
        yield opened


def upload(client: TestClient, key: dict[str, str]) -> Any:
    return client.post("/v1/datasets", content=TABLE, headers=key)


def assert_refused(answer: Any) -> None:
    assert (answer.status_code, answer.json()["code"]) == (413, "quota-reached")
    assert str(MOST_BYTES) in answer.json()["detail"]


def leave_file(database: Database, tenant: str, job_id: str, size: int) -> None:
    with database.of(tenant).transaction() as session:
        blob = blobs.store(session, b"x" * size)
        session.add(ArtefactRecord(job_id=job_id, name="x", media_type="x/y", blob_id=blob.id))


@pytest.mark.slow
def test_an_upload_beyond_the_quota_is_refused_until_there_is_room(
    client: TestClient, make_key: MakeKey
) -> None:
    full, other = make_key("full"), make_key("other")
    first = upload(client, full)
    assert first.status_code == 201
    assert_refused(upload(client, full))
    assert len(client.get("/v1/datasets", headers=full).json()["items"]) == 1
    assert upload(client, other).status_code == 201
    assert client.delete(first.headers["location"], headers=full).status_code == 204
    assert upload(client, full).status_code == 201


def test_a_tenant_whose_results_fill_its_quota_submits_nothing_more(
    client: TestClient, make_key: MakeKey, database: Database
) -> None:
    full, other = make_key("full"), make_key("other")
    job_id = client.post("/v1/jobs", json=JOB, headers=full).json()["id"]
    leave_file(database, "full", job_id, MOST_BYTES)
    assert_refused(client.post("/v1/jobs", json=JOB, headers=full))
    assert_refused(upload(client, full))
    # Looking, trying and deleting store nothing.
    assert client.get(f"/v1/jobs/{job_id}", headers=full).status_code == 200
    assert client.post("/v1/jobs:validate", json=JOB, headers=full).status_code == 200
    assert client.put(f"/v1/jobs/{job_id}/cancellation", headers=full).status_code == 202
    assert client.post("/v1/jobs", json=JOB, headers=other).status_code == 202
    assert client.delete(f"/v1/jobs/{job_id}", headers=full).status_code == 204
    assert client.post("/v1/jobs", json=JOB, headers=full).status_code == 202


def test_everything_of_a_tenant_is_counted_and_listed(
    client: TestClient,
    make_key: MakeKey,
    database: Database,
    keyed_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for tenant, size in (("small", 3), ("large", 40_000)):
        key = make_key(tenant)
        job_id = client.post("/v1/jobs", json=JOB, headers=key).json()["id"]
        leave_file(database, tenant, job_id, size)
    assert upload(client, make_key("small")).status_code == 201
    with database.of("large").snapshot() as session:
        assert quota.stored_bytes(session) == {"large": 40_000}
    with database.of("small").snapshot() as session:
        num_bytes = quota.stored_bytes(session)["small"]
    with database.snapshot() as session:
        num_all = session.scalar(select(func.sum(BlobRecord.size)))
    # The upload, what was read from it (numbers, and censored cells), and the file.
    assert 40_000 + num_bytes == num_all
    monkeypatch.setenv("VNCE_DATABASE_URL", keyed_settings.database_url)
    monkeypatch.setattr("sys.argv", ["quota"])
    quota_command.main()
    lines = capsys.readouterr().out.split("\n")
    assert [line.split() for line in lines if line] == [
        ["40,000", "large"],
        [f"{num_bytes:,}", "small"],
    ]

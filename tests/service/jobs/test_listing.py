"""Lists of jobs over HTTP: filters, pages, and queries that mean nothing."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from service.db.database import Database
from service.jobs.records import JobRecord

AddDataset = Callable[..., str]
TABLE = "a,b,c\n" + "\n".join(f"{1 + row},{5 + row % 3},{2 + row % 5}" for row in range(20))


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Return the database of the client; the SQL is tested on both kinds elsewhere."""
    return sqlite_url


@pytest.fixture
def body(add_dataset: AddDataset) -> dict[str, Any]:
    return {"kind": "estimation", "dataset_id": add_dataset(TABLE)}


def test_list_is_filtered_by_every_parameter(client: TestClient, add_dataset: AddDataset) -> None:
    first, second = add_dataset(TABLE), add_dataset(TABLE)
    body = {"kind": "estimation", "dataset_id": first}
    tagged = client.post("/v1/jobs", json=body | {"tag": "x"}).json()["id"]
    other = client.post("/v1/jobs", json=body | {"dataset_id": second}).json()["id"]
    client.put(f"/v1/jobs/{other}/cancellation")

    def listed(query: str) -> list[str]:
        return [job["id"] for job in client.get(f"/v1/jobs?{query}").json()["items"]]

    assert listed("") == [other, tagged]
    assert listed("tag=x") == [tagged]
    assert listed(f"dataset_id={second}") == [other]
    assert listed("state=cancelled") == [other]
    assert listed("kind=estimation") == [other, tagged]


def test_walk_over_pages_meets_every_job_once(
    client: TestClient, database: Database, body: dict[str, Any]
) -> None:
    made = {client.post("/v1/jobs", json=body).json()["id"] for _ in range(7)}
    with database.transaction() as session:
        session.execute(update(JobRecord).values(created_at=1_000_000_000.25))
    met: list[str] = []
    cursor = ""
    while True:
        page = client.get(f"/v1/jobs?limit=2{cursor}").json()
        met.extend(job["id"] for job in page["items"])
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
        client.post("/v1/jobs", json=body)  # newer than every page to come
    assert len(met) == len(set(met)) == 7
    assert set(met) == made


@pytest.mark.parametrize(
    "query", ["cursor=no", "cursor=bmFuIHg=", "limit=0", "limit=x", "state=x", "kind=x", "tag=%00"]
)
def test_wrong_query_is_named(client: TestClient, query: str) -> None:
    answer = client.get(f"/v1/jobs?{query}")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["parameter"] == query.partition("=")[0]

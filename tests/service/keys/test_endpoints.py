"""Keys over HTTP: made, listed, revoked, each only by their own tenant."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from service.app import create_app
from service.db.database import Database
from service.http.scopes import Scope
from service.keys.records import ApiKeyRecord
from service.settings import Settings

MakeKey = Callable[..., dict[str, str]]


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Return the database of the client."""
    return sqlite_url


@pytest.fixture
def admin(make_key: MakeKey) -> dict[str, str]:
    return make_key("lab")


def create(client: TestClient, headers: dict[str, str], **changes: Any) -> Any:
    body = {"name": "scripts", "scopes": ["read", "submit"], **changes}
    return client.post("/v1/api-keys", json=body, headers=headers)


def test_a_new_key_works_and_its_token_is_shown_once(
    client: TestClient, admin: dict[str, str]
) -> None:
    answer = create(client, admin, expires_at="2999-01-01T00:00:00+01:00")
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    made = answer.json()
    assert (made["tenant"], made["scopes"]) == ("lab", ["read", "submit"])
    assert made["expires_at"] == "2998-12-31T23:00:00Z"
    headers = {"Authorization": f"Bearer {made['token']}"}
    assert client.get("/v1/jobs", headers=headers).status_code == 200
    shown = client.get(answer.headers["location"], headers=admin).json()
    assert "token" not in shown
    assert made["token"] not in client.get("/v1/api-keys", headers=admin).text


def test_a_key_may_end_at_the_latest_time_that_can_be_written(
    client: TestClient, admin: dict[str, str]
) -> None:
    latest = "9999-12-31T23:59:59Z"
    answer = create(client, admin, expires_at=latest)
    assert answer.status_code == 201
    assert client.get(answer.headers["location"], headers=admin).json()["expires_at"] == latest


def test_the_secret_is_nowhere_in_the_database(
    client: TestClient, admin: dict[str, str], database: Database
) -> None:
    token = create(client, admin).json()["token"]
    with database.of("lab").snapshot() as session:
        records = session.scalars(select(ApiKeyRecord)).all()
    assert len(records) == 2
    assert token.split("_", 2)[2] not in str([vars(record) for record in records])


def test_a_revoked_key_works_no_longer_and_stays_in_the_list(
    client: TestClient, admin: dict[str, str]
) -> None:
    made = create(client, admin).json()
    headers = {"Authorization": f"Bearer {made['token']}"}
    times = set()
    for _ in range(2):  # a second time changes nothing
        assert client.delete(f"/v1/api-keys/{made['id']}", headers=admin).status_code == 204
        times.add(client.get(f"/v1/api-keys/{made['id']}", headers=admin).json()["revoked_at"])
    assert len(times) == 1
    answer = client.get("/v1/jobs", headers=headers)
    assert answer.status_code == 401
    assert "revoked" in answer.json()["detail"]
    listed = client.get("/v1/api-keys", headers=admin).json()["items"]
    assert [key["id"] for key in listed if key["revoked_at"]] == [made["id"]]


def test_pages_together_are_all_keys_newest_first(
    client: TestClient, admin: dict[str, str]
) -> None:
    made = [create(client, admin).json()["id"] for _ in range(4)]
    found, cursor = [], None
    while True:
        query = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
        page = client.get("/v1/api-keys", params=query, headers=admin).json()
        found += [key["id"] for key in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert len(found) == len(set(found)) == 5  # with the one that asks
    assert set(made) < set(found)


def test_who_may_not_look_at_the_whole_service_cannot_make_a_key_that_may(
    client: TestClient, make_key: MakeKey
) -> None:
    tenants = make_key("lab", Scope.ADMIN)
    refused = create(client, tenants, scopes=["read", "metrics"])
    assert (refused.status_code, refused.json()["code"]) == (403, "insufficient-scope")
    assert len(client.get("/v1/api-keys", headers=tenants).json()["items"]) == 1
    operators = make_key("lab", Scope.ADMIN, Scope.METRICS)
    assert create(client, operators, scopes=["metrics"]).status_code == 201


def test_another_tenants_keys_are_not_there(
    client: TestClient, admin: dict[str, str], make_key: MakeKey
) -> None:
    made = create(client, admin).json()
    other = make_key("other")
    assert client.get(f"/v1/api-keys/{made['id']}", headers=other).status_code == 404
    assert client.delete(f"/v1/api-keys/{made['id']}", headers=other).status_code == 404
    assert len(client.get("/v1/api-keys", headers=other).json()["items"]) == 1
    own = {"Authorization": f"Bearer {made['token']}"}
    assert client.get("/v1/jobs", headers=own).status_code == 200


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"scopes": []}, "/scopes"),
        ({"scopes": ["write"]}, "/scopes/0"),
        ({"name": ""}, "/name"),
        ({"expires_at": "2001-01-01T00:00:00Z"}, "/expires_at"),
        ({"expires_at": "2999-01-01T00:00:00"}, "/expires_at"),
        # In the year 10000, and in it once rounded to the millisecond.
        ({"expires_at": "9999-12-31T23:59:59-14:00"}, "/expires_at"),
        ({"expires_at": "9999-12-31T23:59:59.9999Z"}, "/expires_at"),
        ({"expires_at": 4_102_444_800}, "/expires_at"),
        ({"tenant": "other"}, "/tenant"),
    ],
)
def test_what_does_not_fit_is_named(
    client: TestClient, admin: dict[str, str], changes: dict[str, Any], pointer: str
) -> None:
    answer = create(client, admin, **changes)
    assert answer.status_code == 422
    assert [item["pointer"] for item in answer.json()["errors"]] == [pointer]


def test_a_service_without_a_secret_to_hash_keys_under_says_what_to_set(settings: Settings) -> None:
    with TestClient(create_app(settings)) as client:
        answer = create(client, {})
    assert answer.status_code == 503
    assert answer.json()["code"] == "unavailable"
    assert "VNCE_KEY_SECRET" in answer.json()["detail"]

"""Who is let in, and what those are told who are not."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import make_url, update

from service.app import create_app
from service.db import database as database_module
from service.db.database import Database
from service.db.identifiers import new_id
from service.http.scopes import Scope
from service.keys.records import ApiKeyRecord
from service.settings import Authentication, Settings

MakeKey = Callable[..., dict[str, str]]
OPEN = ["/livez", "/v1/version", "/openapi.json", "/docs"]


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Return the database of the client."""
    return sqlite_url


def problem_of(answer: Any, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["code"] == code
    assert problem["request_id"] == answer.headers["x-request-id"]
    return problem


@pytest.mark.parametrize("path", OPEN)
def test_what_says_how_to_use_the_service_is_open(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 200


def test_every_other_path_asks_for_a_key(client: TestClient, keyed_settings: Settings) -> None:
    paths = create_app(keyed_settings).openapi()["paths"]
    closed = {path: methods for path, methods in paths.items() if path not in [*OPEN, "/readyz"]}
    assert closed
    for path, methods in closed.items():
        for method in methods:
            answer = client.request(method, path)
            problem_of(answer, 401, "unauthenticated")
            assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("path", ["/", "/v1", "/nowhere", "/v1/jobs/", "//v1/jobs", "/docs/x"])
def test_a_path_that_does_not_exist_asks_for_a_key_too(client: TestClient, path: str) -> None:
    problem_of(client.get(path), 401, "unauthenticated")


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Basic dXNlcjpwYXNz", "Bearer vnce_0123456789ab_" + "x" * 43, "é"],
)
def test_a_text_that_is_no_key_is_refused(client: TestClient, header: str) -> None:
    headers = {"Authorization": header.encode("latin-1")}
    problem_of(client.get("/v1/jobs", headers=headers), 401, "unauthenticated")


def test_a_right_prefix_with_a_wrong_secret_is_as_unknown_as_any_other(
    client: TestClient, make_key: MakeKey
) -> None:
    right = make_key()["Authorization"]
    wrong = right[:-1] + ("A" if right[-1] != "A" else "B")
    unknown = "Bearer vnce_0123456789ab_" + "x" * 43
    details = [
        problem_of(client.get("/v1/jobs", headers={"Authorization": h}), 401, "unauthenticated")
        for h in (wrong, unknown)
    ]
    assert details[0]["detail"] == details[1]["detail"]


@pytest.mark.parametrize("scheme", ["Basic", "Token", "vnce"])
def test_a_key_is_sent_as_a_bearers(client: TestClient, make_key: MakeKey, scheme: str) -> None:
    _, _, token = make_key()["Authorization"].partition(" ")
    answer = client.get("/v1/jobs", headers={"Authorization": f"bearer {token}"})
    assert answer.status_code == 200
    answer = client.get("/v1/jobs", headers={"Authorization": f"{scheme} {token}"})
    problem_of(answer, 401, "unauthenticated")


@pytest.mark.parametrize("end", ["expires_at", "revoked_at"])
def test_why_a_key_works_no_longer_is_not_told_to_who_has_only_its_prefix(
    client: TestClient, make_key: MakeKey, database: Database, end: str
) -> None:
    right = make_key()["Authorization"]
    with database.transaction() as session:
        session.execute(update(ApiKeyRecord).values({end: 1.0}))
    wrong = right[:-43] + "x" * 43
    answer = client.get("/v1/jobs", headers={"Authorization": wrong})
    assert "not known" in problem_of(answer, 401, "unauthenticated")["detail"]


def test_a_body_is_not_read_from_strangers(client: TestClient) -> None:
    answer = client.post("/v1/jobs", content=b"{" * 100, headers={"Content-Type": "text/x"})
    problem_of(answer, 401, "unauthenticated")


def test_a_key_that_works_is_let_in_and_its_use_is_noted(
    client: TestClient, make_key: MakeKey
) -> None:
    headers = make_key()
    assert client.get("/v1/api-keys", headers=headers).json()["items"][0]["last_used_at"]
    assert client.get("/v1/jobs", headers=headers).status_code == 200


def test_a_key_is_let_in_though_its_use_cannot_be_written_down(
    keyed_settings: Settings,
    make_key: MakeKey,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    headers = make_key()
    monkeypatch.setattr(database_module, "SQLITE_BUSY_SECONDS", 0.1)
    file = make_url(keyed_settings.database_url).database
    assert file is not None
    with (
        closing(sqlite3.connect(file, isolation_level=None)) as writer,
        TestClient(create_app(keyed_settings)) as client,
    ):
        writer.execute("BEGIN IMMEDIATE")  # until it ends, nobody else writes
        assert client.get("/v1/jobs", headers=headers).status_code == 200
        writer.execute("ROLLBACK")
        listed = client.get("/v1/api-keys", headers=headers).json()["items"]
    assert listed[0]["last_used_at"] is not None


def test_a_key_that_has_expired_says_so(
    client: TestClient, make_key: MakeKey, database: Database
) -> None:
    headers = make_key(expires_at=datetime.now(UTC) + timedelta(hours=1))
    assert client.get("/v1/jobs", headers=headers).status_code == 200
    with database.transaction() as session:
        session.execute(update(ApiKeyRecord).values(expires_at=1.0))
    problem = problem_of(client.get("/v1/jobs", headers=headers), 401, "unauthenticated")
    assert "expired" in problem["detail"]


@pytest.mark.parametrize(
    ("scope", "method", "path", "allowed"),
    [
        (Scope.READ, "GET", "/v1/jobs", True),
        (Scope.READ, "HEAD", "/v1/jobs", True),
        (Scope.READ, "POST", "/v1/jobs", False),
        (Scope.READ, "POST", "/v1/datasets", False),
        (Scope.READ, "DELETE", "/v1/datasets/x", False),
        (Scope.READ, "GET", "/v1/api-keys", False),
        (Scope.SUBMIT, "POST", "/v1/datasets:preview", True),
        (Scope.SUBMIT, "GET", "/v1/jobs", False),
        (Scope.SUBMIT, "POST", "/v1/api-keys", False),
        (Scope.ADMIN, "GET", "/v1/api-keys", True),
        (Scope.ADMIN, "GET", "/v1/jobs", False),
        (Scope.METRICS, "GET", "/v1/jobs", False),
        (Scope.METRICS, "GET", "/metrics", True),
        # A route also matches a path that ends in a line break.
        (Scope.READ, "GET", "/metrics%0A", False),
        (Scope.READ, "GET", "/v1/status%0A", False),
        (Scope.READ, "GET", "/v1/api-keys%0A", False),
    ],
)
def test_a_scope_allows_what_it_is_for(
    client: TestClient, make_key: MakeKey, scope: Scope, method: str, path: str, allowed: bool
) -> None:
    answer = client.request(method, path, headers=make_key("default", scope))
    assert (answer.status_code != 403) == allowed
    if not allowed and method != "HEAD":
        assert f"`{scope}`" in problem_of(answer, 403, "insufficient-scope")["detail"]


def test_every_closed_path_asks_for_its_scope(
    client: TestClient, keyed_settings: Settings, make_key: MakeKey
) -> None:
    reader, watcher = (make_key("default", scope) for scope in (Scope.READ, Scope.METRICS))
    of_all = ("/metrics", "/v1/status")
    for path, methods in create_app(keyed_settings).openapi()["paths"].items():
        if path not in [*OPEN, "/readyz"]:
            for method in methods:
                other = reader if path in of_all or method != "get" else watcher
                # The body is none that could be read: it is not looked at.
                answer = client.request(method, path, headers=other)
                problem_of(answer, 403, "insufficient-scope")


def test_a_proxys_prefix_does_not_open_another_scope(
    keyed_settings: Settings, make_key: MakeKey
) -> None:
    headers = make_key("default", Scope.READ)
    app = create_app(keyed_settings)
    with TestClient(app, root_path="/vnce", raise_server_exceptions=False) as client:
        for path in ("/v1/api-keys", "/vnce/v1/api-keys"):
            problem_of(client.get(path, headers=headers), 403, "insufficient-scope")
        assert client.get("/vnce/livez").status_code == 200


def test_who_asks_too_often_is_told_when_to_come_back(
    keyed_settings: Settings, make_key: MakeKey
) -> None:
    hasty, calm = make_key(), make_key()
    app = create_app(keyed_settings.model_copy(update={"requests_per_minute": 3}))
    with TestClient(app) as client:
        assert [client.get("/v1/jobs", headers=hasty).status_code for _ in range(3)] == [200] * 3
        answer = client.get("/v1/jobs", headers=hasty)
        problem_of(answer, 429, "too-many-requests")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert client.get("/v1/jobs", headers=calm).status_code == 200


def test_what_a_key_is_not_for_counts_among_its_requests(
    keyed_settings: Settings, make_key: MakeKey
) -> None:
    reader = make_key("default", Scope.READ)
    app = create_app(keyed_settings.model_copy(update={"requests_per_minute": 3}))
    with TestClient(app) as client:
        tries = [client.get("/v1/api-keys", headers=reader) for _ in range(4)]
        assert [answer.status_code for answer in tries] == [403] * 3 + [429]


def test_a_database_that_is_away_is_no_reason_to_let_anyone_in(
    keyed_settings: Settings, make_key: MakeKey
) -> None:
    headers = make_key()
    away = "postgresql+psycopg://user@127.0.0.1:1/name?connect_timeout=1"
    app = create_app(keyed_settings.model_copy(update={"database_url": away}))
    with TestClient(app, raise_server_exceptions=False) as client:
        problem_of(client.get("/v1/jobs", headers=headers), 503, "unavailable")


def test_keys_without_the_secret_to_hash_them_under_do_not_start(settings: Settings) -> None:
    with pytest.raises(LookupError, match="VNCE_KEY_SECRET"):
        create_app(settings.model_copy(update={"authentication": Authentication.KEYS}))


def test_where_no_key_is_asked_for_one_that_is_sent_is_judged_all_the_same(
    keyed_settings: Settings, make_key: MakeKey
) -> None:
    others = make_key("others", Scope.READ)
    app = create_app(keyed_settings.model_copy(update={"authentication": Authentication.NONE}))
    with TestClient(app) as client:
        assert client.get("/v1/jobs").status_code == 200
        assert client.get("/v1/jobs", headers=others).status_code == 200
        problem_of(
            client.delete(f"/v1/jobs/{new_id('job')}", headers=others), 403, "insufficient-scope"
        )
        bad = {"Authorization": "Bearer nonsense"}
        problem_of(client.get("/v1/jobs", headers=bad), 401, "unauthenticated")

"""Whatever is sent, and whatever breaks: no answer tells how the service is made.

No stack trace, file of the machine, SQL or name of a class is in any answer. The routes are the
app's own, so that a new one is walked at once.
"""

import inspect
import logging
import re
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx2
import pytest
from fastapi import HTTPException
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient
from sqlalchemy import make_url

from service.app import create_app
from service.settings import Settings

MakeKey = Callable[..., dict[str, str]]
JSON = {"Content-Type": "application/json"}
BYTES = {"Content-Type": "application/octet-stream"}
ODD_TEXTS = [
    "ds_unknown",
    "\0",
    "9" * 400,
    "1e999",
    "'; DROP TABLE jobs; --",
    "../../etc/passwd",
]
ODD_BODIES: dict[str, tuple[bytes, dict[str, str]]] = {
    "malformed JSON": (b'{"kind": ', JSON),
    "of a wrong type": (b'{"kind": ["estimation"], "name": {}, "edges": 1, "scopes": "all"}', JSON),
    "almost a job": (b'{"kind": "estimation", "dataset_id": 1e400, "model": {"kind": 7}}', JSON),
    "with NUL": (b'{"kind": "estimation", "dataset_id": "\\u0000", "name": "\\u0000"}', JSON),
    "a huge number": (b'{"kind": "simulation", "n_rows": ' + b"9" * 4000 + b"}", JSON),
    "a long list": (b'{"kind": "estimation", "variables": [' + b"1," * 150_000 + b"1]}", JSON),
    "another type of content": (b"a=1", {"Content-Type": "multipart/form-data; boundary="}),
    "compressed": (b"\x1f\x8b", {**JSON, "Content-Encoding": "gzip"}),
    "a damaged file": (b"PAR1" + b"\0" * 40 + b"PAR1", BYTES),
}
ODD_HEADERS = [
    {"If-None-Match": '"', "Range": "bytes=9-1", "Accept": "text/;q=x"},
    {"Last-Event-ID": "9" * 400, "Idempotency-Key": "\x7f" * 10},
    {"Authorization": "Bearer vnce_000000000000_x"},
    {"Authorization": "Basic " + "A" * 2000},
    {"Content-Length": "-1"},
]
# Names of these are plain words or part of the API; what is left is ours alone.
CAMEL = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]*)+")
WITHOUT_SECRETS = [
    r"Traceback",
    r"line \d+, in ",
    r"\.py\b",
    r"site-packages",
    r"object at 0x",
    r"<class ",
    r"\[SQL",
    r"sqlalche",
    r"sqlite|psycopg|pydantic|starlette|fastapi|pyarrow",
    r"no such (?:table|column)|not a database|malformed|syntax error",
    r"SELECT\s.*\sFROM\s|INSERT INTO|DELETE FROM|UPDATE \w+ SET",
    re.escape(str(Path(__file__).parents[3])),
    re.escape(sys.prefix),
    re.escape(tempfile.gettempdir()) + "/",
]
ERROR_NAME = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Warning)\b")


class Operation(NamedTuple):
    """A method of a route, and the names of what it takes in its query."""

    method: str
    path: str
    query: list[str]

    def address(self, text: str) -> str:
        """Return the path with `text` for each of its parameters."""
        return re.sub(r"\{[^}]*\}", lambda _: quote(text, safe=""), self.path)


def operations(app: Any) -> list[Operation]:
    found = []
    for route in iter_route_contexts(app.routes):
        if route.path is not None and route.methods is not None:
            dependant = getattr(route, "dependant", None)
            query = [] if dependant is None else [p.alias for p in dependant.query_params]
            found += [Operation(method, route.path, query) for method in sorted(route.methods)]
    return found


@cache
def own_class_names() -> set[str]:
    modules = [module for name, module in sys.modules.items() if name.split(".")[0] == "service"]
    classes = {
        name for module in modules for name, _ in inspect.getmembers(module, inspect.isclass)
    }
    return {name for name in classes if CAMEL.fullmatch(name)}


def assert_tells_nothing(answer: httpx2.Response, sent: Any) -> None:
    text = answer.text + str(dict(answer.headers))
    if answer.status_code < 400:
        # The description of the API names its schemas, and its texts databases that it runs on.
        assert "Traceback" not in text, sent
        return
    document = answer.json()
    # Where the request went is told back as it came.
    document.pop("instance", None)
    shown = repr(document) + str(dict(answer.headers))
    found = [pattern for pattern in WITHOUT_SECRETS if re.search(pattern, shown, re.IGNORECASE)]
    found += ERROR_NAME.findall(shown)
    found += [word for word in CAMEL.findall(shown) if word in own_class_names()]
    assert not found, (sent, found, shown)


def ask(client: TestClient, operation: Operation, text: str, **request: Any) -> httpx2.Response:
    answer = client.request(operation.method, operation.address(text), **request)
    assert_tells_nothing(answer, (operation, text, request))
    return answer


def test_operations_are_all_of_the_app_s_own(client: TestClient) -> None:
    walked = {(o.method.lower(), o.path.replace(":path}", "}")) for o in operations(client.app)}
    paths = client.get("/openapi.json").json()["paths"]
    described = {(method, path) for path, methods in paths.items() for method in methods}
    assert described <= walked


@pytest.mark.parametrize(
    "text",
    [
        'File "/srv/app/endpoints.py", line 3, in get_job',
        "[SQL: SELECT jobs.id FROM jobs]",
        "(sqlite3.OperationalError) no such table: jobs",
        "KeyError: 'x'",
        "Input should be a valid JobRecord",
        f"cannot open {tempfile.gettempdir()}/upload",
    ],
)
def test_this_test_finds_what_leaks(settings: Settings, text: str) -> None:
    app = create_app(settings)

    def fail() -> None:
        # A status of which there is no word of ours.
        raise HTTPException(418, text)

    app.add_api_route("/leaks", fail)
    answer = TestClient(app).get("/leaks")
    assert answer.status_code == 400
    with pytest.raises(AssertionError):
        assert_tells_nothing(answer, "")


@pytest.mark.slow
@pytest.mark.parametrize("text", ODD_TEXTS)
def test_an_odd_path_or_query_tells_nothing(client: TestClient, text: str) -> None:
    for operation in operations(client.app):
        answers = [ask(client, operation, text)]
        answers.append(ask(client, operation, "x", params=dict.fromkeys(operation.query, text)))
        for answer in answers:
            assert answer.status_code < 500 or operation.path == "/readyz", operation


@pytest.mark.slow
@pytest.mark.parametrize("kind", ODD_BODIES)
def test_an_odd_body_tells_nothing(client: TestClient, kind: str) -> None:
    content, headers = ODD_BODIES[kind]
    for operation in operations(client.app):
        if operation.method in ("POST", "PUT", "PATCH"):
            answer = ask(client, operation, "x", content=content, headers=headers)
            assert answer.status_code < 500, operation


@pytest.mark.slow
@pytest.mark.parametrize("headers", ODD_HEADERS, ids=range(len(ODD_HEADERS)))
def test_odd_headers_tell_nothing(client: TestClient, headers: dict[str, str]) -> None:
    for operation in operations(client.app):
        ask(client, operation, "x", headers=headers)


@pytest.fixture
def strangers(keyed_settings: Settings, make_key: MakeKey) -> Iterator[tuple[TestClient, str, str]]:
    """Yield a client with a key of one tenant's, and ids of another's data set and job."""
    with TestClient(create_app(keyed_settings), raise_server_exceptions=False) as opened:
        owner = make_key("owner")
        csv = b"a,b\n" + b"1,2\n3,5\n4,4\n" * 20
        made = opened.post("/v1/datasets", content=csv, headers={**owner, **BYTES}).json()
        body = {"kind": "estimation", "dataset_id": made["id"]}
        job = opened.post("/v1/jobs", json=body, headers=owner).json()
        opened.headers.update(make_key("other"))
        yield opened, made["id"], job["id"]


def test_another_tenant_s_ids_tell_nothing(strangers: tuple[TestClient, str, str]) -> None:
    client, *ids = strangers
    for operation in operations(client.app):
        if "{" in operation.path:
            for text in ids:
                assert 400 <= ask(client, operation, text).status_code < 500, operation


def break_file(file: Path) -> None:
    file.write_bytes(b"this is no database " * 1000)


def drop_tables(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        for table in ("jobs", "datasets", "api_keys", "results"):
            connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")


def remove_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.slow
@pytest.mark.parametrize("damage", [break_file, drop_tables, remove_folder])
def test_a_mistake_within_tells_nothing(
    settings: Settings, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    database = make_url(settings.database_url).database
    assert database is not None
    damage(Path(database))
    statuses = set()
    with (
        caplog.at_level(logging.CRITICAL, logger="service"),
        TestClient(create_app(settings), raise_server_exceptions=False) as client,
    ):
        for operation in operations(client.app):
            for text in ("job_01234567890123456789", "ds_01234567890123456789"):
                answer = ask(client, operation, text, content=b"{}", headers=JSON)
                statuses.add(answer.status_code)
        # A body that is right, which reaches the database.
        body = {"kind": "simulation", "graph": "ring", "n_variables": 4, "n_rows": 50}
        answer = client.post("/v1/jobs", json=body)
        assert_tells_nothing(answer, body)
    assert answer.status_code in (500, 503)
    assert statuses & {500, 503}

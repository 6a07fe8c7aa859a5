"""One line a request, by the route's template; none for probes that are well."""

import logging
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from service.app import create_app
from service.keys.tokens import parse
from service.settings import Settings

LOGGER = "service.requests"
Lines = Callable[[], list[Any]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """Return a function that returns the lines of requests; their `extra` is not typed."""
    caplog.set_level(logging.INFO, logger=LOGGER)
    return lambda: [record for record in caplog.records if record.name == LOGGER]


def test_a_request_is_one_line_with_template_status_and_time(
    client: TestClient, lines: Lines
) -> None:
    client.get("/v1/jobs/job_1?secret=hunter2")
    client.get("/v1/jobs/job_1", headers={"Authorization": "Bearer hunter2"})
    line, refused = lines()
    assert (line.method, line.route, line.status) == ("GET", "/v1/jobs/{job_id}", 422)
    assert (refused.route, refused.status) == ("unknown", 401)
    assert line.milliseconds > 0
    assert line.client == "testclient"
    assert "hunter2" not in str([vars(line), vars(refused)])
    assert not hasattr(line, "key_id")


@pytest.mark.integration
@pytest.mark.parametrize(
    ("trusted", "told"),
    [
        ("127.0.0.1", "192.0.2.7"),
        ("192.0.2.0/24, 127.0.0.0/8", "192.0.2.7"),
        ("192.0.2.1", "127.0.0.1"),
    ],
)
def test_who_asks_is_told_by_a_trusted_proxy_only(
    serve: Callable[..., int], settings: Settings, lines: Lines, trusted: str, told: str
) -> None:
    port = serve(create_app(settings), settings.model_copy(update={"trusted_proxies": trusted}))
    headers = {"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https"}
    httpx.get(f"http://127.0.0.1:{port}/v1/jobs", headers=headers, trust_env=False)
    while not lines():  # it comes after the answer
        time.sleep(0.01)
    assert [line.client for line in lines()] == [told]


def test_head_and_unknown_paths_have_their_lines(client: TestClient, lines: Lines) -> None:
    client.head("/v1/version")
    client.get("/nowhere/at/all")
    known, unknown = lines()
    assert (known.method, known.route, known.status) == ("HEAD", "/v1/version", 200)
    assert (unknown.route, unknown.status) == ("unknown", 404)


def test_a_key_is_named_and_not_told(
    keyed_settings: Settings, make_key: Callable[..., dict[str, str]], lines: Lines
) -> None:
    client = TestClient(create_app(keyed_settings))
    key = make_key()
    client.get("/v1/jobs", headers=key)
    client.get("/v1/jobs")
    let_in, refused = lines()
    assert let_in.status == 200
    assert let_in.key_id.startswith("key_")
    token = parse(key["Authorization"].removeprefix("Bearer "))
    assert token is not None
    assert token.secret not in str(vars(let_in))
    assert refused.status == 401
    assert not hasattr(refused, "key_id")


def test_a_mistake_of_ours_is_a_line_with_status_500(settings: Settings, lines: Lines) -> None:
    app = create_app(settings)

    @app.get("/broken")
    def broken() -> None:
        raise RuntimeError("a mistake")

    TestClient(app, raise_server_exceptions=False).get("/broken")
    (line,) = lines()
    assert (line.route, line.status) == ("/broken", 500)


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_probes_that_are_well_leave_no_line(client: TestClient, lines: Lines, path: str) -> None:
    client.get(path)
    assert lines() == []


def test_a_probe_that_is_not_well_leaves_one(settings: Settings, lines: Lines) -> None:
    nowhere = "postgresql+psycopg://nobody@127.0.0.1:1/nothing"
    app = create_app(settings.model_copy(update={"database_url": nowhere}))
    TestClient(app).get("/readyz")
    (line,) = lines()
    assert (line.route, line.status) == ("/readyz", 503)

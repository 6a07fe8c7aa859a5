"""Web pages of others do not get in while no key is asked for."""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.app import create_app
from service.settings import Settings
from worker.embedded.origin_guard import guard_origin


@pytest.fixture
def client() -> Iterator[TestClient]:
    app = FastAPI()
    app.add_api_route("/", lambda: "hello", methods=["GET", "POST"])
    guard_origin(app)
    with TestClient(app, base_url="http://127.0.0.1:8000") as opened:
        yield opened


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Host": "localhost:8000"},
        {"Host": "LOCALHOST"},
        {"Host": "[::1]:8000"},
        {"Host": "127.0.0.2"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8000"},
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_programs_and_our_own_pages_are_let_in(
    client: TestClient, method: str, headers: dict[str, str]
) -> None:
    assert client.request(method, "/", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},  # a name that points here: DNS rebinding
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "localhost.evil.example:8000"},
        {"Host": "192.0.2.1"},
        {"Host": "["},
        {"Host": "[::1]evil.example"},
        {"Host": "evil.example@localhost"},
        {"Host": "localhost#.evil.example"},
        {"Host": "localhost:8000, evil.example"},
        {"Host": "127.0.0.1:80:evil.example"},
        {"Host": ""},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://["},
        {"Origin": "http://127.0.0.1:8000/page"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_pages_and_names_of_others_are_not(
    client: TestClient, method: str, headers: dict[str, str]
) -> None:
    answer = client.request(method, "/", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "foreign-origin")


def test_a_link_from_elsewhere_may_be_followed_but_nothing_be_sent(client: TestClient) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get("/", headers=headers).status_code == 200
    assert client.post("/", headers=headers).status_code == 403


def test_a_refusal_is_an_answer_like_any_other(settings: Settings) -> None:
    app = create_app(settings)
    guard_origin(app)
    with TestClient(app, base_url="http://evil.example") as client:
        for path in ("/v1/jobs", "/livez", "/nowhere"):
            answer = client.get(path)
            assert answer.status_code == 403
            assert answer.json()["request_id"] == answer.headers["x-request-id"]
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]

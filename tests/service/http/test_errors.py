"""Every error is a problem document, and every answer has a request id."""

import asyncio
import errno
import logging
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.types import Message

from service.app import create_app
from service.settings import Settings

JSON = {"Content-Type": "application/json"}
DUMMY = {"kind": "estimation", "dataset_id": "ds_x"}


def assert_is_problem(answer: httpx2.Response, status: int, code: str) -> None:
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == f"urn:vnce:problem:{code}"
    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["title"]
    assert problem["detail"]
    assert problem["request_id"] == answer.headers["x-request-id"]


def test_unknown_path(client: TestClient) -> None:
    answer = client.get("/v1/nothing")
    assert_is_problem(answer, 404, "not-found")
    assert answer.json()["instance"] == "/v1/nothing"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_path_with_a_slash_too_many_leads_nowhere(client: TestClient, method: str) -> None:
    answer = client.request(method, "/v1/jobs/", json=DUMMY, follow_redirects=False)
    assert_is_problem(answer, 404, "not-found")


def test_method_that_does_not_apply(client: TestClient) -> None:
    answer = client.patch("/v1/jobs")
    assert_is_problem(answer, 405, "method-not-allowed")
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}


def test_method_that_does_not_apply_to_a_file_of_the_documentation(client: TestClient) -> None:
    answer = client.post("/docs-files/swagger-ui.css")
    assert_is_problem(answer, 405, "method-not-allowed")
    assert answer.headers["allow"] == "HEAD, GET"


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_content_that_is_not_json(client: TestClient, media_type: str) -> None:
    answer = client.post("/v1/jobs", content="a=1", headers={"Content-Type": media_type})
    assert_is_problem(answer, 415, "unsupported-media-type")


def test_compressed_content(client: TestClient) -> None:
    headers = JSON | {"Content-Encoding": "gzip"}
    answer = client.post("/v1/jobs", content=b"\x1f\x8b", headers=headers)
    assert_is_problem(answer, 415, "unsupported-media-type")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"kind": }', b"\xff", b"[" * 100_000, b'{"kind": "estimation"} x'],
)
def test_content_that_cannot_be_read_as_json(client: TestClient, content: bytes) -> None:
    answer = client.post("/v1/jobs", content=content, headers=JSON)
    assert_is_problem(answer, 422, "validation-failed")


@pytest.mark.parametrize("content", ["null", "[]", '"text"', "1"])
def test_json_that_is_no_object(client: TestClient, content: str) -> None:
    answer = client.post("/v1/jobs", content=content, headers=JSON)
    assert_is_problem(answer, 422, "validation-failed")
    assert [item["pointer"] for item in answer.json()["errors"]] == [""]


def test_submitted_values_are_not_echoed(client: TestClient) -> None:
    answer = client.post("/v1/jobs", json=DUMMY | {"seed": "my-secret", "x": "my-secret"})
    assert_is_problem(answer, 422, "validation-failed")
    assert "my-secret" not in answer.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"variables": [1] * 100_000}, "/variables/0"),
        ({str(number): 1 for number in range(100_000)}, ""),
    ],
    ids=["items", "fields"],
)
def test_hundred_thousand_mistakes_are_not_looked_for(
    client: TestClient, change: dict[str, Any], pointer: str
) -> None:
    answer = client.post("/v1/jobs", json=DUMMY | change)
    assert_is_problem(answer, 422, "validation-failed")
    assert [item["pointer"] for item in answer.json()["errors"]] == [pointer]


def test_long_list_of_mistakes_is_cut_and_counted(settings: Settings) -> None:
    app = create_app(settings)

    def add(numbers: list[int]) -> int:
        return sum(numbers)

    app.add_api_route("/sums", add, methods=["POST"])
    answer = TestClient(app).post("/sums", json=["x"] * 150)
    assert_is_problem(answer, 422, "validation-failed")
    assert len(answer.json()["errors"]) == 100
    assert answer.json()["detail"].startswith("150 ")


def test_half_a_surrogate_pair_is_no_text(client: TestClient) -> None:
    content = b'{"kind": "estimation", "dataset_id": "ds_x", "variables": ["\\ud800", "b"]}'
    answer = client.post("/v1/jobs", content=content, headers=JSON)
    assert_is_problem(answer, 422, "validation-failed")


def test_announced_body_above_the_limit_is_refused_unread(settings: Settings) -> None:
    app = create_app(settings.model_copy(update={"max_json_bytes": 1_000}))
    headers = JSON | {"Content-Length": "1001"}
    answer = TestClient(app).post("/v1/jobs", content=iter([]), headers=headers)
    assert_is_problem(answer, 413, "payload-too-large")
    assert "1000 bytes" in answer.json()["detail"]


def test_body_at_the_limit_is_read(settings: Settings) -> None:
    app = create_app(settings.model_copy(update={"max_json_bytes": 1_000}))
    answer = TestClient(app).post("/v1/jobs", content=b" " * 1000, headers=JSON)
    assert_is_problem(answer, 422, "validation-failed")


def test_endless_body_is_refused_while_it_arrives(settings: Settings) -> None:
    app = create_app(settings.model_copy(update={"max_json_bytes": 10_000}))
    chunk = {"type": "http.request", "body": b" " * 1_000, "more_body": True}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/jobs",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    num_read = 0
    answer: list[Message] = []

    async def receive() -> Message:
        nonlocal num_read
        num_read += 1
        return chunk

    async def send(message: Message) -> None:
        answer.append(message)

    asyncio.run(app(scope, receive, send))
    assert answer[0]["status"] == 413
    # Ten chunks make the limit, and the eleventh passes it.
    assert num_read == 11


@pytest.mark.parametrize(
    "error",
    [
        OperationalError("SELECT 1", {}, Exception("no route to host")),
        InterfaceError("SELECT 1", {}, Exception("no route: connection already closed")),
        PoolTimeoutError("no route to a free connection"),
    ],
)
def test_database_that_is_away_is_503_with_the_time_to_wait(
    settings: Settings, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    app = create_app(settings)

    def fail() -> None:
        raise error

    app.add_api_route("/fails", fail)
    answer = TestClient(app).get("/fails")
    assert_is_problem(answer, 503, "unavailable")
    assert int(answer.headers["retry-after"]) >= 1
    assert "no route" not in answer.text
    # The reason, short enough to be told at every request of a long outage; no statement.
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "no route" in record.reason
    assert "SELECT" not in record.reason
    assert record.exc_info is None


@pytest.mark.parametrize(
    "error",
    [
        OperationalError("INSERT", {}, Exception("database or disk is full")),
        OSError(errno.ENOSPC, "No space left on device"),
    ],
)
def test_full_disk_is_507(settings: Settings, error: Exception) -> None:
    app = create_app(settings)

    def fail() -> None:
        raise error

    app.add_api_route("/fails", fail)
    assert_is_problem(TestClient(app).get("/fails"), 507, "storage-full")


def test_our_own_mistake_is_500_without_its_text(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(settings)

    def fail() -> None:
        raise RuntimeError("secret of the house")

    app.add_api_route("/fails", fail)
    with caplog.at_level(logging.ERROR, logger="service"):
        answer = TestClient(app, raise_server_exceptions=False).get("/fails")
    assert_is_problem(answer, 500, "internal")
    assert "secret" not in answer.text
    assert answer.headers["x-request-id"] in caplog.text
    assert answer.headers["connection"] == "close"  # as uvicorn does, without a word


def test_request_ids_differ(client: TestClient) -> None:
    ids = {client.get("/livez").headers["x-request-id"] for _ in range(10)}
    assert len(ids) == 10


def test_documentation_is_served(client: TestClient) -> None:
    assert client.get("/docs").status_code == 200
    assert client.get("/openapi.json").json()["openapi"].startswith("3.")


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/datasets", "/v1/jobs/job_x/result"])
def test_a_parameter_that_an_operation_does_not_have(client: TestClient, path: str) -> None:
    answer = client.get(path, params={"stat": "running"})
    assert_is_problem(answer, 422, "validation-failed")
    assert [error["parameter"] for error in answer.json()["errors"]] == ["stat"]


def test_probes_may_add_parameters_of_their_own(client: TestClient) -> None:
    assert client.get("/livez", params={"from": "proxy"}).status_code == 200


def test_a_form_that_is_not_named_is_asked_for_where_it_belongs(client: TestClient) -> None:
    path = "/v1/datasets/dataset_x/ground-truth"
    (error,) = client.put(path, json={"edges": []}).json()["errors"]
    assert error["pointer"] == "/kind"
    (error,) = client.put(path, json={"kind": "list"}).json()["errors"]
    assert error["pointer"] == "/kind"
    assert "'edges'" in error["message"]

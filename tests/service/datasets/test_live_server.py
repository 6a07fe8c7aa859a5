"""Uploads through a real HTTP server: limits, broken connections, and who waits for whom."""

import itertools
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import pytest
from fastapi import FastAPI

from service.app import create_app
from service.datasets import endpoints, lifecycle
from service.http import json_route
from service.settings import Authentication, Settings
from tests.waiting import PATIENCE_SECONDS, wait_for

pytestmark = pytest.mark.integration

LIMIT = 16 * 2**20


@pytest.fixture
def port(sqlite_url: str, serve: Callable[[FastAPI], int]) -> int:
    """Return the port of a server that takes uploads of 16 MiB."""
    settings = Settings(
        database_url=sqlite_url, max_body_bytes=LIMIT, authentication=Authentication.NONE
    )
    return serve(create_app(settings))


@pytest.fixture
def http(port: int) -> Iterator[httpx.Client]:
    """Yield a client of the server."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
        yield client


def send_raw(port: int, head: str, body: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"POST /v1/datasets HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode())
        connection.sendall(body)


def num_datasets(http: httpx.Client) -> int:
    return len(http.get("/v1/datasets").json()["items"])


def test_a_body_without_length_is_refused_at_the_limit(http):
    block = b"1,2,3\n" * 10_000
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while sent < 50 * LIMIT:
            sent += len(block)
            yield block

    answer = http.post("/v1/datasets", content=endless())
    assert (answer.status_code, str(LIMIT) in answer.text) == (413, True)
    # What the sockets buffer on the way comes on top of the limit.
    assert sent < LIMIT + 16 * 2**20


def test_a_cut_off_upload_is_not_stored(http, port):
    body = b"a,b\n" + b"1,2\n" * 6_000
    send_raw(port, "Content-Length: 40000", body)
    send_raw(port, "Transfer-Encoding: chunked", b"%x\r\n%s\r\n" % (len(body), body))
    # A whole upload afterwards: the broken ones were dealt with when it is answered.
    assert http.post("/v1/datasets?name=whole", content=body).status_code == 201
    time.sleep(0.5)
    assert num_datasets(http) == 1


def test_a_cut_off_submission_is_no_mistake_of_ours(
    http: httpx.Client, port: int, caplog: pytest.LogCaptureFixture
) -> None:
    head = "Content-Type: application/json\r\nContent-Length: 100"
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n{{".encode())
        time.sleep(0.1)
    counted = 'vnce_http_requests_total{method="POST",route="/v1/jobs",status="400"} 1.0'
    wait_for(lambda: counted in http.get("/metrics").text, counted)
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    ("path", "reader"), [("/v1/datasets", "create"), ("/v1/datasets:preview", "preview")]
)
def test_others_are_served_while_a_table_arrives_and_is_read(http, monkeypatch, path, reader):
    is_reading, others_were_served = threading.Event(), threading.Event()
    read = getattr(lifecycle, reader)

    def read_slowly(*arguments):
        is_reading.set()
        # Were tables read in the event loop, nobody would be served and this would run out.
        assert others_were_served.wait(PATIENCE_SECONDS)
        return read(*arguments)

    monkeypatch.setattr(lifecycle, reader, read_slowly)
    with ThreadPoolExecutor(1) as pool, httpx.Client(base_url=http.base_url) as other:
        other.timeout = PATIENCE_SECONDS / 2

        def serve_others() -> None:
            assert other.get("/livez").status_code == 200
            assert other.get("/v1/datasets").status_code == 200

        def table() -> Iterator[bytes]:
            yield b"a,b\n"
            for row in range(4):
                yield f"{row},{row % 2}\n".encode() * 100_000
                serve_others()

        answer = pool.submit(http.post, path, content=table())
        assert is_reading.wait(PATIENCE_SECONDS)
        serve_others()
        others_were_served.set()
    assert answer.result().is_success


def test_others_are_served_while_a_large_true_graph_is_judged(http, monkeypatch):
    names = [f"v{number}" for number in range(400)]
    rows = [",".join(str(number % k) for number in range(400)) for k in (5, 7)]
    table = "\n".join([",".join(names), *rows])
    dataset_id = http.post("/v1/datasets", content=table.encode()).json()["id"]
    matrix = [[int(abs(i - j) == 1) for j in range(400)] for i in range(400)]
    body = json.dumps({"kind": "adjacency", "matrix": matrix})
    assert len(body) > json_route.LONG_BYTES
    is_judging, others_were_served = threading.Event(), threading.Event()
    read = json_route._JsonRequest.json

    async def read_slowly(request):
        is_judging.set()
        # In the server's event loop nobody would be served meanwhile, and this would run out.
        assert others_were_served.wait(PATIENCE_SECONDS)
        return await read(request)

    monkeypatch.setattr(json_route._JsonRequest, "json", read_slowly)
    path, headers = f"/v1/datasets/{dataset_id}/ground-truth", {"Content-Type": "application/json"}
    with ThreadPoolExecutor(1) as pool, httpx.Client(base_url=http.base_url, timeout=30) as other:
        answer = pool.submit(http.put, path, content=body, headers=headers)
        assert is_judging.wait(PATIENCE_SECONDS)
        assert other.get("/livez").status_code == 200
        assert other.get("/v1/datasets").status_code == 200
        others_were_served.set()
    assert answer.result().status_code == 201


def test_few_long_bodies_are_judged_at_a_time_and_all_in_the_end(http, monkeypatch):
    names = [f"v{number}" for number in range(150)]
    rows = [",".join(str(number % k) for number in range(150)) for k in (5, 7)]
    table = "\n".join([",".join(names), *rows])
    dataset_id = http.post("/v1/datasets", content=table.encode()).json()["id"]
    pairs = itertools.combinations(names, 2)
    edges = [{"source": one, "target": other} for one, other in pairs]
    body = json.dumps({"kind": "edges", "edges": edges}).encode()
    assert len(body) > json_route.LONG_BYTES
    judge, lock = endpoints.canonical_edges, threading.Lock()
    number = most = 0

    def judge_slowly(*arguments):
        nonlocal number, most
        with lock:
            number += 1
            most = max(most, number)
        time.sleep(0.1)
        with lock:
            number -= 1
        return judge(*arguments)

    monkeypatch.setattr(endpoints, "canonical_edges", judge_slowly)
    path, headers = f"/v1/datasets/{dataset_id}/ground-truth", {"Content-Type": "application/json"}
    with ThreadPoolExecutor(8) as pool:
        put = partial(http.put, path, content=body, headers=headers)
        answers = list(pool.map(lambda _: put(), range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert most == json_route.MOST_LONG

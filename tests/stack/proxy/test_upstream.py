"""Connections to the API are kept and closed by the proxy first; events are not held back."""

import re
import signal
import socket
from pathlib import Path

import pytest
from uvicorn import Config

from service.http.serving import configuration
from service.settings import Settings
from tests.served import Served
from tests.stack.proxy.conftest import TEMPLATES, Proxy, Upstream
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.integration

HEAD = b"POST /v1/jobs HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\n{}"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
JOB = {"kind": "simulation", "graph": "ring", "n_variables": 3, "n_rows": 10, "seed": 1}


def kept_seconds() -> int:
    """Return how long the proxy keeps a connection to the API that rests."""
    text = (TEMPLATES / "nginx.conf.template").read_text()
    _, _, upstream = text.partition("upstream kept_connections {")
    (seconds,) = re.findall(r"keepalive_timeout (\d+)s;", upstream)
    return int(seconds)


def test_the_api_keeps_a_connection_for_longer_than_the_proxy() -> None:
    async def app(scope: object, receive: object, send: object) -> None: ...

    served: Config = configuration(app, Settings(), graceful_seconds=1)
    assert kept_seconds() + 5 <= served.timeout_keep_alive


def receive(connection: socket.socket, end: bytes) -> bytes:
    """Return what comes, up to what ends it."""
    taken = b""
    while end not in taken:
        chunk = connection.recv(2**16)
        assert chunk, taken
        taken += chunk
    return taken


def test_a_connection_to_the_api_is_used_again_and_closed_by_the_proxy(
    start_proxy: Proxy, upstream: Upstream, tmp_path: Path
) -> None:
    # Not after as long as it takes in the stack.
    shorter = (f"keepalive_timeout {kept_seconds()}s;", "keepalive_timeout 1s;")
    with start_proxy(tmp_path / "proxy", upstream.port, replaced=shorter) as proxy:
        asked = None
        for _ in range(2):
            connection = proxy.connect(HEAD)
            asked = asked or upstream.take()
            request = receive(asked, b"{}")
            assert request.startswith(b"POST /v1/jobs HTTP/1.1\r\n")
            assert b"connection: close" not in request.lower()
            asked.sendall(ANSWER)
            receive(connection, b"ok")
        assert asked is not None
        assert asked.recv(1) == b""  # this end has not closed it
        assert not upstream.has_been_asked()


def test_an_offer_of_another_protocol_is_not_passed_on(
    start_proxy: Proxy, upstream: Upstream, tmp_path: Path
) -> None:
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    with start_proxy(tmp_path / "proxy", upstream.port) as proxy:
        proxy.connect(HEAD.replace(b"Host:", offer + b"Host:"))
        request = receive(upstream.take(), b"{}").lower()
        assert b"\r\nupgrade:" not in request
        assert b"\r\nconnection:" not in request


def test_an_event_comes_before_the_next_is_sent(
    start_proxy: Proxy, upstream: Upstream, tmp_path: Path
) -> None:
    with start_proxy(tmp_path / "proxy", upstream.port) as proxy:
        connection = proxy.connect(b"GET /v1/jobs/job_x/events HTTP/1.1\r\nHost: here\r\n\r\n")
        asked = upstream.take()
        asked.sendall(b"HTTP/1.1 200 OK\r\nX-Accel-Buffering: no\r\n\r\n")
        for number in range(5):
            event = b"id: %d\n\n" % number
            asked.sendall(event)
            receive(connection, event)


def test_a_stop_does_not_wait_for_the_end_of_an_event_stream(
    start_proxy: Proxy, upstream: Upstream, tmp_path: Path
) -> None:
    shorter = ("worker_shutdown_timeout 5s;", "worker_shutdown_timeout 1s;")
    with start_proxy(tmp_path / "proxy", upstream.port, replaced=shorter) as proxy:
        connection = proxy.connect(b"GET /v1/jobs/job_x/events HTTP/1.1\r\nHost: here\r\n\r\n")
        event = b"id: 1\n\n"
        upstream.take().sendall(b"HTTP/1.1 200 OK\r\nX-Accel-Buffering: no\r\n\r\n" + event)
        receive(connection, event)
        proxy.process.send_signal(signal.SIGQUIT)
        assert proxy.process.wait(PATIENCE_SECONDS) == 0


def test_the_changes_of_a_job_come_one_by_one(proxy: Served) -> None:
    client = proxy.client()
    job = client.post("/vnce/v1/jobs", json=JOB).json()
    with client.stream("GET", job["links"]["events"]) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        states = (line for line in stream.iter_lines() if line.startswith("data: "))
        assert '"state": "queued"' in next(states)
        # It changes only now that the first event has come.
        assert proxy.client().put(job["links"]["cancellation"]).json()["state"] == "cancelled"
        assert '"state": "cancelled"' in next(states)
        assert list(states) == []

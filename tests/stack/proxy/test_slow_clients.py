"""Clients that send or take nothing are given up, and cost the API no connection."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.served import Served, answer_of
from tests.stack.proxy.conftest import NEVER, Proxy, Upstream
from tests.waiting import wait_for

pytestmark = pytest.mark.integration

HEAD = b"GET /livez HTTP/1.1\r\nHost: here\r\n\r\n"
POST = b"POST /v1/datasets HTTP/1.1\r\nHost: here\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
MANY = 30


@pytest.fixture
def hasty(start_proxy: Proxy, upstream: Upstream, tmp_path: Path) -> Iterator[Served]:
    """Yield a proxy before `upstream` that waits a second for its clients."""
    with start_proxy(tmp_path / "proxy", upstream.port, VNCE_SILENCE_SECONDS="1") as proxy:
        yield proxy


@pytest.fixture
def narrow(start_proxy: Proxy, upstream: Upstream, tmp_path: Path) -> Iterator[Served]:
    """Yield a proxy before `upstream` that takes few connections, and silence from all."""
    own = {
        "VNCE_SILENCE_SECONDS": NEVER,
        "VNCE_MAX_CONNECTIONS": str(MANY),
        "VNCE_MAX_CONNECTIONS_PER_CLIENT": "3",
    }
    with start_proxy(tmp_path / "proxy", upstream.port, **own) as proxy:
        yield proxy


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        HEAD[:8],
        HEAD[:-2],
        POST + b"Content-Length: 1000\r\n\r\n",
        POST + b"Content-Length: 1000\r\n\r\na,b\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n4\r\na,b\n\r\n",
    ],
    ids=["nothing", "half a line", "half a head", "no body", "half a body", "half of its chunks"],
)
def test_a_client_that_stops_is_given_up_and_the_api_never_hears_of_it(
    hasty: Served, upstream: Upstream, sent: bytes
) -> None:
    assert answer_of(hasty.connect(sent)) == b""
    assert not upstream.has_been_asked()


def test_a_head_that_comes_drop_by_drop_is_given_up(hasty: Served, upstream: Upstream) -> None:
    connection = hasty.connect(HEAD[:-2])

    def is_given_up() -> bool:
        try:
            connection.sendall(b"X: a\r\n")
        except ConnectionError:
            return True
        return False

    wait_for(is_given_up, "the end of the connection")
    assert not upstream.has_been_asked()


def test_a_body_that_comes_piece_by_piece_comes_to_the_api_at_once(
    narrow: Served, upstream: Upstream
) -> None:
    # More than lies in memory: were it passed on as it comes, its beginning would have come.
    first, last = b"1,2\n" * 50_000, b"3,4\n"
    length = f"Content-Length: {len(first) + len(last)}\r\n\r\n".encode()
    connection = narrow.connect(POST + length + first)

    def is_in_a_file() -> bool:
        # Connections are made before there is a worker to take them, and its files come and go.
        workers = psutil.Process(narrow.process.pid).children()
        files = [file for worker in workers for file in Path(f"/proc/{worker.pid}/fd").iterdir()]
        return any(f"{narrow.folder}/bodies/" in os.path.realpath(file) for file in files)

    wait_for(is_in_a_file, "a file of the proxy")
    assert not upstream.has_been_asked()
    connection.sendall(last)
    asked = upstream.take()
    taken = b""
    while not taken.endswith(first + last):
        taken += asked.recv(2**16)
    asked.sendall(ANSWER)
    assert connection.recv(2**16).startswith(b"HTTP/1.1 200 ")


def test_a_connection_that_rests_after_its_answer_is_closed(
    hasty: Served, upstream: Upstream
) -> None:
    connection = hasty.connect(HEAD)
    upstream.take().sendall(ANSWER)
    assert answer_of(connection).endswith(b"ok")


def test_an_answer_that_nobody_takes_is_given_up_for_the_api_too(
    hasty: Served, upstream: Upstream
) -> None:
    hasty.connect(HEAD, receive_buffer=2**14)
    asked = upstream.take()
    asked.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
    with pytest.raises(ConnectionError):
        asked.sendall(b"x" * 100_000_000)


def test_an_answer_that_is_taken_slowly_goes_on_for_longer_than_a_silence(
    hasty: Served, upstream: Upstream
) -> None:
    # Each piece is taken before the next is there, and between two of them half a silence goes by.
    connection = hasty.connect(HEAD)
    asked = upstream.take()
    asked.sendall(b"HTTP/1.1 200 OK\r\nX-Accel-Buffering: no\r\nContent-Length: 6\r\n\r\n")
    taken = b""
    for piece in (b"a", b"b", b"c", b"d", b"e", b"f"):
        time.sleep(0.5)
        asked.sendall(piece)
        while not taken.endswith(piece):
            taken += connection.recv(2**16)
    assert taken.endswith(b"abcdef")


def test_connections_that_rest_make_room_for_those_that_ask(
    narrow: Served, upstream: Upstream
) -> None:
    resting = [narrow.connect() for _ in range(2 * MANY)]
    connection = narrow.connect(HEAD)
    upstream.take().sendall(ANSWER)
    assert connection.recv(2**16).startswith(b"HTTP/1.1 200 ")
    wait_for(lambda: sum(map(is_closed, resting)) > MANY, "the rest to have been closed")


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_one_client_has_only_so_many_requests_answered_at_a_time(
    narrow: Served, upstream: Upstream
) -> None:
    for _ in range(3):
        narrow.connect(HEAD)
        upstream.take()  # and does not answer
    refused = narrow.client().get("/livez")
    assert (refused.status_code, refused.json()["code"]) == (429, "too-many-requests")
    assert int(refused.headers["retry-after"]) > 0

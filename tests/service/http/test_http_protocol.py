"""What no application sees: requests that are none, or without an end, at a real server."""

import select
import socket
import time
from collections.abc import Callable, Iterator

import pytest
from starlette.types import Receive, Scope, Send

pytestmark = pytest.mark.integration

MOST_HEAD_BYTES = 64 * 1024
# The bound, and what one read of the server may bring beyond it.
MOST_KEPT = MOST_HEAD_BYTES + 2**18
PIECES_BYTES = 2**15
REQUEST = b"POST /anything HTTP/1.1\r\nHost: here\r\n"


async def count(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with how many bytes of body came."""
    num_bytes, has_more = 0, True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        num_bytes += len(message.get("body", b""))
        has_more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": str(num_bytes).encode()})


@pytest.fixture
def connection(serve: Callable[[object], int]) -> Iterator[socket.socket]:
    """Yield a connection to a server of `count`."""
    with socket.create_connection(("127.0.0.1", serve(count)), timeout=30) as connected:
        yield connected


def answer(connection: socket.socket) -> bytes:
    """Return what the server says before it hangs up."""
    said = b""
    while chunk := connection.recv(2**16):
        said += chunk
    return said


def assert_refused(connection: socket.socket) -> None:
    said = answer(connection)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "nonsense", [b"good morning\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"\x16\x03\x01"]
)
def test_what_is_no_request_is_refused(connection: socket.socket, nonsense: bytes) -> None:
    connection.sendall(nonsense)
    assert_refused(connection)


@pytest.mark.parametrize(
    ("opening", "piece"),
    [
        (b"GET /", b"a"),
        (REQUEST, b"X-Long: a\r\n"),
        (REQUEST + b"X-Long: ", b"a"),
        (REQUEST + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", b"X-Long: a\r\n"),
        (REQUEST + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Long: ", b"a"),
        (REQUEST + b"Transfer-Encoding: chunked\r\n\r\n1;", b"a"),
    ],
    ids=["target", "headers", "header", "trailers", "trailer", "extension of a chunk"],
)
def test_a_head_without_an_end_is_refused(
    connection: socket.socket, opening: bytes, piece: bytes
) -> None:
    connection.sendall(opening)
    num_bytes = 0
    # Little at a time: a server that hangs up on what it has not read may lose its answer.
    while not select.select([connection], [], [], 0.05)[0]:
        assert num_bytes < MOST_KEPT
        connection.sendall(piece * (PIECES_BYTES // len(piece)))
        num_bytes += PIECES_BYTES
    assert_refused(connection)


def test_a_long_head_and_any_body_are_let_through(connection: socket.socket) -> None:
    long = b"X-Long: " + b"a" * (MOST_HEAD_BYTES - 200) + b"\r\n"
    head = REQUEST + long + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = b"400\r\n" + b"a" * 1024 + b"\r\n"
    connection.sendall(head + chunks * 1024 + b"0\r\nX-Trailer: a\r\n\r\n")
    assert answer(connection).endswith(b"7\r\n1048576\r\n0\r\n\r\n")


def test_a_long_head_that_comes_in_pieces_is_let_through(connection: socket.socket) -> None:
    long = b"X-Long: " + b"a" * (MOST_HEAD_BYTES - 200) + b"\r\n"
    head = REQUEST + long + b"Connection: close\r\nContent-Length: 0\r\n\r\n"
    for start in range(0, len(head), PIECES_BYTES // 2):
        connection.sendall(head[start : start + PIECES_BYTES // 2])
        time.sleep(0.05)  # so that each is read by itself
    assert answer(connection).startswith(b"HTTP/1.1 200 ")


def test_requests_of_one_connection_are_bounded_one_by_one(connection: socket.socket) -> None:
    long = b"X-Long: " + b"a" * (MOST_HEAD_BYTES // 2) + b"\r\n"
    for _ in range(4):
        connection.sendall(REQUEST + long + b"Content-Length: 2\r\n\r\n")
        connection.sendall(b"ab")
        assert b"200 OK" in connection.recv(2**16)


@pytest.mark.parametrize("protocol", [b"websocket", b"h2c"])
def test_a_request_that_offers_another_protocol_is_one_request_in_this_one(
    connection: socket.socket, protocol: bytes
) -> None:
    body = b"GET /other HTTP/1.1\r\nHost: here\r\n\r\n"
    offer = b"Connection: Upgrade\r\nUpgrade: " + protocol + b"\r\n"
    length = b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n"
    connection.sendall(REQUEST + offer + length)
    select.select([connection], [], [], 0.1)
    connection.sendall(body)
    connection.shutdown(socket.SHUT_WR)
    said = answer(connection)
    assert said.count(b"HTTP/1.1 200 ") == 1
    assert said.count(b"HTTP/1.1") == 1

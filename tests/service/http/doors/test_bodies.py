"""Bodies that do not come are not waited for, and leave nothing behind."""

import json
import time
from pathlib import Path

import pytest

from tests.service.http.doors.conftest import SILENCE_SECONDS
from tests.service.http.doors.door import PATIENCE_SECONDS, Door, wait_for

pytestmark = pytest.mark.integration

UPLOAD = b"POST /v1/datasets HTTP/1.1\r\nHost: here\r\nContent-Length: 10000000\r\n\r\n"
CHUNKED = b"POST /v1/datasets HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
JOB = (
    b"POST /v1/jobs HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
    b"Content-Length: 1000\r\n\r\n"
)


def assert_timed_out(answer: bytes) -> None:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    headers = head.lower().split(b"\r\n")
    assert b"content-type: application/problem+json" in headers
    assert b"connection: close" in headers
    assert json.loads(body)["code"] == "request-timeout"


def answer_of(connection) -> bytes:
    answer = b""
    while chunk := connection.recv(2**16):
        answer += chunk
    return answer


@pytest.mark.parametrize(
    "sent",
    [UPLOAD, UPLOAD + b"a,b\n1,2\n", CHUNKED + b"4\r\na,b\n\r\n", JOB + b"{"],
    ids=["upload", "half an upload", "chunks", "submission"],
)
def test_a_silent_body_is_answered_408(door: Door, sent: bytes) -> None:
    began = time.monotonic()
    assert_timed_out(answer_of(door.connect(sent)))
    assert time.monotonic() - began > 0.5 * SILENCE_SECONDS


def test_a_body_that_comes_byte_by_byte_is_answered_408(door: Door) -> None:
    connection = door.connect(UPLOAD)
    began = time.monotonic()
    connection.settimeout(0.2)
    while time.monotonic() < began + PATIENCE_SECONDS:
        try:
            connection.sendall(b"1")
            answer = connection.recv(2**16)
        except TimeoutError:
            continue
        except ConnectionError:
            return  # a byte that met the end of the connection takes the answer with it
        assert answer.startswith(b"HTTP/1.1 408 ")
        return
    raise AssertionError("it is still waited for")


def test_the_file_of_a_silent_body_is_freed(door: Door) -> None:
    files = Path(f"/proc/{door.process.pid}/fd")

    def temporary() -> list[str]:
        # Without a name of their own; the kernel says what they were.
        targets = [str(link.readlink()) for link in files.iterdir() if link.is_symlink()]
        return [target for target in targets if str(door.folder) in target and "deleted" in target]

    fed = door.connect(UPLOAD)

    def is_there() -> bool:
        nonlocal fed
        try:
            fed.sendall(b"1,2\n" * 2**12)  # one that goes on is not given up
        except ConnectionError:
            fed = door.connect(UPLOAD)  # but by a machine too busy to send
        return bool(temporary())

    wait_for(is_there, "a file")
    silent = [door.connect(UPLOAD + b"1,2\n" * 2**19) for _ in range(4)]
    for connection in silent:
        assert_timed_out(answer_of(connection))
    wait_for(lambda: not temporary(), "the files to be freed")

"""Bodies that do not come are not waited for, and leave nothing behind."""

import json
import time
from pathlib import Path

import pytest

from service.slow_bodies import LEAST_BYTES_PER_SECOND
from tests.service.doors.conftest import SILENCE_SECONDS
from tests.service.doors.door import Door, wait_for

pytestmark = pytest.mark.integration

UPLOAD = b"POST /v1/datasets HTTP/1.1\r\nHost: here\r\nContent-Length: 10000000\r\n\r\n"
CHUNKED = b"POST /v1/datasets HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
JOB = (
    b"POST /v1/jobs HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
    b"Content-Length: 1000\r\n\r\n"
)
# What a busy machine may add to a second.
SLACK_SECONDS = 5.0


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
    assert 0.5 * SILENCE_SECONDS < time.monotonic() - began < SLACK_SECONDS


def test_a_body_that_comes_byte_by_byte_is_answered_408(door: Door) -> None:
    connection = door.connect(UPLOAD)
    began = time.monotonic()
    connection.settimeout(0.2)
    while time.monotonic() < began + SLACK_SECONDS:
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


def test_a_body_that_comes_steadily_may_take_longer_than_a_silence(door: Door) -> None:
    rows = "".join(f"{row},{row * 7 % 1009}\n" for row in range(6_000)).encode()
    table = b"a,b\n" + rows
    head = UPLOAD.replace(b"10000000", str(len(table)).encode())
    connection = door.connect(head)
    pieces = 20
    # Twice as quick as the least.
    pause = len(table) / pieces / LEAST_BYTES_PER_SECOND / 2
    assert pieces * pause > 2 * SILENCE_SECONDS
    step = -(-len(table) // pieces)
    for start in range(0, len(table), step):
        connection.sendall(table[start : start + step])
        time.sleep(pause)
    assert connection.recv(2**16).startswith(b"HTTP/1.1 201 ")


def test_the_file_of_a_silent_body_is_freed(door: Door) -> None:
    files = Path(f"/proc/{door.process.pid}/fd")

    def temporary() -> list[str]:
        # Without a name of their own; the kernel says what they were.
        targets = [str(link.readlink()) for link in files.iterdir() if link.is_symlink()]
        return [target for target in targets if str(door.folder) in target and "deleted" in target]

    connections = [door.connect(UPLOAD + b"1,2\n" * 2**19) for _ in range(4)]
    wait_for(lambda: len(temporary()) == len(connections), "the files", SILENCE_SECONDS)
    wait_for(lambda: not temporary(), "the files to be freed", SLACK_SECONDS)
    for connection in connections:
        assert_timed_out(answer_of(connection))

"""Connections that ask for nothing are cut off, and there are only so many of them."""

import socket
import time
from pathlib import Path

import pytest

from tests.service.doors.conftest import MAX_CONNECTIONS, SILENCE_SECONDS
from tests.service.doors.door import (
    SOFT_LIMIT_OF_FILES,
    Door,
    is_open,
    num_bytes_to_read,
    seconds_open,
    wait_for,
)

pytestmark = pytest.mark.integration

LIVEZ = b"GET /livez HTTP/1.1\r\nHost: here\r\n\r\n"
# What a busy machine may add to a second.
SLACK_SECONDS = 5.0
# In a silence a slow reader takes less than what the system by itself asks for at a time.
BYTES_PER_SECOND = int(600_000 / SILENCE_SECONDS)
SLOW_BYTES = 2_400_000


def seconds_fed(connection: socket.socket, drop: bytes) -> float:
    """Send a little now and then until the server hangs up; return how long that took."""
    began = time.monotonic()
    while (seconds := time.monotonic() - began) < SLACK_SECONDS:
        try:
            connection.sendall(drop)
        except ConnectionError:
            break
        time.sleep(0.1)
    return seconds


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /livez HT", LIVEZ[:-2], LIVEZ + b"GET", LIVEZ + LIVEZ[:-2]],
    ids=["nothing", "half a line", "half a head", "half a second line", "half a second head"],
)
def test_a_connection_without_a_whole_request_is_cut_off(door: Door, sent: bytes) -> None:
    assert 0.5 * SILENCE_SECONDS < seconds_open(door.connect(sent)) < SLACK_SECONDS


def test_a_head_that_comes_drop_by_drop_is_cut_off(door: Door) -> None:
    seconds = seconds_fed(door.connect(LIVEZ[:-2]), b"X: a\r\n")
    assert 0.5 * SILENCE_SECONDS < seconds < SLACK_SECONDS


def test_the_rest_of_a_body_that_was_refused_is_not_waited_for(door: Door) -> None:
    head = b"POST /v1/nowhere HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n"
    assert seconds_fed(door.connect(head), b"a") < SLACK_SECONDS


def test_a_request_that_takes_its_time_is_answered(door: Door) -> None:
    connection = door.connect()
    for byte in LIVEZ:
        connection.sendall(bytes([byte]))
        time.sleep(0.5 * SILENCE_SECONDS / len(LIVEZ))
    assert b"HTTP/1.1 200" in connection.recv(2**16)


def test_connections_beyond_the_limit_are_told_so_and_probes_are_answered(door: Door) -> None:
    wait_for(lambda: door.client().get("/v1/jobs").is_success, "the connections of others to end")
    door.hang_up()
    held = [door.connect(LIVEZ[:-2]) for _ in range(MAX_CONNECTIONS)]
    client = door.client()
    refused = client.get("/v1/jobs")
    assert refused.status_code == 503
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["code"] == "unavailable"
    assert int(refused.headers["retry-after"]) > 0
    assert refused.headers["x-request-id"] == refused.json()["request_id"]
    assert client.get("/livez").status_code == 200
    # Those that were there before are served.
    held[0].sendall(b"\r\n")
    assert b"HTTP/1.1 200" in held[0].recv(2**16)
    wait_for(lambda: door.client().get("/v1/jobs").is_success, "held connections to be cut off")


def test_as_many_files_may_be_open_as_connections_need(door: Door) -> None:
    limits = Path(f"/proc/{door.process.pid}/limits").read_text().split("\n")
    (line,) = (line for line in limits if line.startswith("Max open files"))
    allowed = int(line.split()[3])
    assert allowed >= 2 * MAX_CONNECTIONS + 200 > SOFT_LIMIT_OF_FILES


def test_a_flood_of_connections_is_cut_off_at_once(door: Door) -> None:
    flood = [door.connect() for _ in range(MAX_CONNECTIONS + 100 + 50)]
    wait_for(lambda: sum(not is_open(each) for each in flood) >= 50, "some to be cut off", 0.5)
    wait_for(lambda: not any(is_open(each) for each in flood), "the rest to be cut off")
    wait_for(lambda: door.client().get("/v1/jobs").is_success, "requests to be answered again")


@pytest.fixture(scope="module")
def download(served: Door) -> tuple[bytes, int]:
    """Return a request for some megabytes, more than lie in buffers on their way, and how many."""
    rows = "".join(f"{row},{row * 7 % 1009}.25\n" for row in range(600_000))
    table = b"a,b\n" + rows.encode()
    answer = served.client().post("/v1/datasets", content=table)
    assert answer.status_code == 201, answer.text
    path = f"{answer.headers['location']}/content".encode()
    return b"GET " + path + b" HTTP/1.1\r\nHost: here\r\n\r\n", len(table)


def test_an_answer_that_nobody_takes_is_cut_off(door: Door, download: tuple[bytes, int]) -> None:
    request, size = download
    connection = door.connect(request, receive_buffer=2**14)
    time.sleep(SILENCE_SECONDS + 1)
    assert num_bytes_to_read(connection) < size


def test_an_answer_that_is_taken_slowly_is_given_whole(
    door: Door, download: tuple[bytes, int]
) -> None:
    request, size = download
    connection = door.connect(request, receive_buffer=2**14)
    num_bytes = 0
    began = time.monotonic()
    while num_bytes < size:
        chunk = connection.recv(2**14)
        assert chunk
        num_bytes += len(chunk)
        if num_bytes < SLOW_BYTES:
            time.sleep(max(0.0, began + num_bytes / BYTES_PER_SECOND - time.monotonic()))

"""Connections that ask for nothing are cut off, and there are only so many of them."""

import socket
import time
from pathlib import Path

import psutil
import pytest

from tests.service.http.doors.conftest import MAX_CONNECTIONS, SILENCE_SECONDS
from tests.service.http.doors.door import (
    PATIENCE_SECONDS,
    SOFT_LIMIT_OF_FILES,
    Door,
    in_time,
    is_open,
    num_bytes_to_read,
    seconds_open,
    wait_for,
)

pytestmark = pytest.mark.integration

LIVEZ = b"GET /livez HTTP/1.1\r\nHost: here\r\n\r\n"
# What happens before a silence is over has to be begun and done in so much of it.
IN_TIME = 0.9 * SILENCE_SECONDS
# In a silence a slow reader takes less than what the system by itself asks for at a time.
BYTES_PER_SECOND = int(600_000 / SILENCE_SECONDS)
SLOW_BYTES = 2_400_000


def wait_until_served(door: Door) -> None:
    wait_for(lambda: door.client().get("/v1/jobs").is_success, "requests to be answered again")


def seconds_fed(connection: socket.socket, drop: bytes) -> float:
    """Send a little now and then until the server hangs up; return how long that took."""
    began = time.monotonic()
    while (seconds := time.monotonic() - began) < PATIENCE_SECONDS:
        try:
            connection.sendall(drop)
        except ConnectionError:
            return seconds
        time.sleep(0.1)
    raise AssertionError("it is still waited for")


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /livez HT", LIVEZ[:-2], LIVEZ + b"GET", LIVEZ + LIVEZ[:-2]],
    ids=["nothing", "half a line", "half a head", "half a second line", "half a second head"],
)
def test_a_connection_without_a_whole_request_is_cut_off(door: Door, sent: bytes) -> None:
    assert seconds_open(door.connect(sent)) > 0.5 * SILENCE_SECONDS


def test_a_head_that_comes_drop_by_drop_is_cut_off(door: Door) -> None:
    seconds = seconds_fed(door.connect(LIVEZ[:-2]), b"X: a\r\n")
    assert seconds > 0.5 * SILENCE_SECONDS


def test_the_rest_of_a_body_that_was_refused_is_not_waited_for(door: Door) -> None:
    head = b"POST /v1/nowhere HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n"
    seconds_fed(door.connect(head), b"a")


def test_a_request_that_takes_its_time_is_answered(door: Door) -> None:
    def ask_slowly() -> None:
        connection = door.connect()
        for byte in LIVEZ:
            connection.sendall(bytes([byte]))
            time.sleep(0.5 * SILENCE_SECONDS / len(LIVEZ))
        assert b"HTTP/1.1 200" in connection.recv(2**16)

    in_time(ask_slowly, IN_TIME)


def test_connections_beyond_the_limit_are_told_so_and_probes_are_answered(door: Door) -> None:
    wait_until_served(door)

    def ask_beyond_the_limit() -> None:
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

    in_time(ask_beyond_the_limit, IN_TIME)
    wait_until_served(door)


def test_as_many_files_may_be_open_as_connections_need(door: Door) -> None:
    limits = Path(f"/proc/{door.process.pid}/limits").read_text().split("\n")
    (line,) = (line for line in limits if line.startswith("Max open files"))
    allowed = int(line.split()[3])
    assert allowed >= 2 * MAX_CONNECTIONS + 200 > SOFT_LIMIT_OF_FILES


def test_a_flood_of_connections_is_cut_off_at_once(door: Door) -> None:
    def flood_it() -> None:
        door.hang_up()
        flood = [door.connect() for _ in range(MAX_CONNECTIONS + 100 + 50)]
        wait_for(lambda: sum(not is_open(each) for each in flood) >= 50, "some to be cut off")
        # Not for their silence: that of the first was longest.
        assert is_open(flood[0])
        wait_for(lambda: not any(is_open(each) for each in flood), "the rest to be cut off")

    in_time(flood_it, IN_TIME)
    wait_until_served(door)


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
    address = connection.getsockname()
    server = psutil.Process(door.process.pid)

    def is_held() -> bool:
        return any(end.raddr == address for end in server.net_connections("tcp"))

    connection.recv(1)  # the answer has begun
    wait_for(lambda: not is_held(), "the connection to be given up")
    assert num_bytes_to_read(connection) < size


def test_an_answer_that_is_taken_slowly_is_given_whole(
    door: Door, download: tuple[bytes, int]
) -> None:
    request, size = download

    def is_taken_whole() -> bool:
        connection = door.connect(request, receive_buffer=2**14)
        num_bytes, longest_pause = 0, 0.0
        began = paused = time.monotonic()
        while num_bytes < size:
            chunk = connection.recv(2**14)
            longest_pause = max(longest_pause, time.monotonic() - paused)
            paused = time.monotonic()
            if not chunk:
                assert longest_pause > 0.5 * SILENCE_SECONDS
                return False  # the machine was too busy to take it
            num_bytes += len(chunk)
            if num_bytes < SLOW_BYTES:
                time.sleep(max(0.0, began + num_bytes / BYTES_PER_SECOND - time.monotonic()))
        return True

    wait_for(is_taken_whole, "an answer to be given whole")

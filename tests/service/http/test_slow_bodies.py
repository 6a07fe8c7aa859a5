"""How long a body is waited for, by a clock that only the client's pauses move."""

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.http.problems import ProblemError
from service.http.slow_bodies import LEAST_BYTES_PER_SECOND, SlowBodyMiddleware

SILENCE_SECONDS = 1000.0
PIECE = LEAST_BYTES_PER_SECOND * 100


class Clock:
    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("service.http.slow_bodies.time", clock)
    return clock


def num_bytes_taken(clock: Clock, pause: float, num_pieces: int) -> int:
    """Return how much of a body comes through whose pieces each take so many seconds."""
    left = num_pieces
    taken = 0

    async def receive() -> Message:
        nonlocal left
        clock.seconds += pause
        await asyncio.sleep(0)  # where a wait is ended that has no time left
        left -= 1
        return {"type": "http.request", "body": b"x" * PIECE, "more_body": left > 0}

    async def read(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal taken
        more = True
        while more:
            message = await receive()
            taken += len(message["body"])
            more = message["more_body"]

    async def send(message: Message) -> None:
        raise AssertionError(message)

    asyncio.run(SlowBodyMiddleware(read, SILENCE_SECONDS)({"type": "http"}, receive, send))
    return taken


def test_a_body_that_comes_steadily_may_take_longer_than_a_silence(clock: Clock) -> None:
    pause = 0.9 * PIECE / LEAST_BYTES_PER_SECOND
    assert num_bytes_taken(clock, pause, num_pieces=40) == 40 * PIECE
    assert clock.seconds > 3 * SILENCE_SECONDS


def test_one_that_comes_too_slowly_is_waited_for_no_longer_than_what_came_allows(
    clock: Clock,
) -> None:
    pause = 2 * PIECE / LEAST_BYTES_PER_SECOND
    # After n pieces 2 n waits are over, and the silence and n more allowed: until n is ten.
    with pytest.raises(ProblemError, match=f"After {10 * PIECE} bytes"):
        num_bytes_taken(clock, pause, num_pieces=40)

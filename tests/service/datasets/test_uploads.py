"""Bodies that are too large, cut off or slow, below the HTTP server."""

import asyncio
import tempfile
import tracemalloc
from collections.abc import Iterator

import pytest
from starlette.requests import Request

from service.datasets.uploads import receive
from service.http.problems import ProblemError

MEBIBYTE = 2**20


class Body:
    """A request body that tells how much of it was asked for."""

    def __init__(self, chunks: Iterator[bytes], *, ends: bool = True) -> None:
        self._chunks = chunks
        self._ends = ends
        self.num_bytes = 0

    async def receive(self) -> dict[str, object]:
        """Return the next ASGI message."""
        chunk = next(self._chunks, None)
        if chunk is None:
            if self._ends:
                return {"type": "http.request", "body": b"", "more_body": False}
            return {"type": "http.disconnect"}
        self.num_bytes += len(chunk)
        return {"type": "http.request", "body": chunk, "more_body": True}


def refusal(body: Body, limit: int, headers: dict[str, str] | None = None) -> ProblemError:
    raw = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    request = Request({"type": "http", "method": "POST", "headers": raw}, body.receive)

    async def read() -> None:
        async with receive(request, limit):
            pass

    with pytest.raises(ProblemError) as caught:
        asyncio.run(read())
    return caught.value


def test_an_endless_body_is_refused_at_the_limit_with_flat_memory():
    chunk = bytes(64 * 1024)
    body = Body(iter(lambda: chunk, None))
    tracemalloc.start()
    try:
        problem = refusal(body, 10 * MEBIBYTE)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert problem.status == 413
    assert body.num_bytes == 10 * MEBIBYTE + len(chunk)
    # The part that is kept in memory before the rest goes to the disk, and its copy on the way.
    assert peak < 4 * MEBIBYTE


def test_no_temporary_file_is_left(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    chunk = bytes(MEBIBYTE)
    refusal(Body(iter(lambda: chunk, None)), 4 * MEBIBYTE)
    assert list(tmp_path.iterdir()) == []


def test_an_announced_length_above_the_limit_is_refused_before_reading():
    body = Body(iter([b"a"]))
    assert refusal(body, 10, {"content-length": str(2 * 2**30)}).status == 413
    assert body.num_bytes == 0


@pytest.mark.parametrize("ends", [True, False])
def test_a_body_that_ends_early_is_refused(ends):
    body = Body(iter([b"a,b\n1,2\n"]), ends=ends)
    problem = refusal(body, 100, {"content-length": "50"})
    assert problem.status == 400
    assert "8 of 50 bytes" in problem.detail


def test_a_chunked_body_that_is_cut_off_is_refused():
    assert refusal(Body(iter([b"a,b\n1,2\n"]), ends=False), 100).status == 400

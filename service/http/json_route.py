"""Routes that take JSON: the type is checked first, and the body is bounded while it arrives.

A long body is read, judged and answered on a thread: in the event loop it would keep everybody
waiting for up to a second. Few are at a time: more would take as much more memory, and as much of
the interpreter from everybody else.
"""

import asyncio
import json
from collections import Counter
from email.message import Message as Header
from typing import Any

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync
from fastapi import Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from service.http.content_coding import refuse_content_coding
from service.http.dependencies import get_settings
from service.http.problems import ProblemCode, ProblemError
from service.http.scoped_route import Handler, ScopedRoute

# Takes some 30 ms to read and judge.
LONG_BYTES = 2**18
# Long bodies that one process reads at a time: each may take some hundred megabytes for a moment.
MOST_LONG = 2
# Nothing that is taken here has more: the longest list of edges has 100,000 objects of two fields
# each, the widest matrix a list a row. Python makes all that a body holds before any schema can
# refuse it, and holds the interpreter meanwhile: for five million lists six seconds.
MOST_OBJECTS = 150_000
MOST_ARRAYS = 10_000
MOST_TEXTS = 500_000
_limiter: RunVar[CapacityLimiter] = RunVar("long_bodies")


class JsonRoute(ScopedRoute):
    """A route whose body, where it has one, is JSON of at most `Settings.max_json_bytes`.

    Use it as `APIRouter(route_class=JsonRoute)`. Answers 415 to another type of content and 413
    as soon as the limit is passed; no more than the limit is held in memory.
    """

    def get_body_handler(self) -> Handler:
        """Return FastAPI's handler behind the two checks."""
        handle = super().get_body_handler()
        if self.body_field is None:
            return handle

        async def handle_parsed(request: Request) -> Response:
            try:
                return await handle(request)
            except HTTPException as error:
                # FastAPI's own, in place of whatever reading the body raises.
                if isinstance(error.__cause__, ProblemError):
                    raise error.__cause__ from None
                raise

        async def handle_json(arriving: Request) -> Response:
            _require_json(arriving)
            request = _JsonRequest(arriving.scope, arriving.receive)
            await _read_at_most(request, (await get_settings(request)).max_json_bytes)
            body = await request.body()
            _require_utf_8(body)
            if len(body) < LONG_BYTES:
                return await handle_parsed(request)

            def handle_long() -> Response:
                _refuse_countless(body)
                # FastAPI parses and validates in the event loop that runs its handler: here in one
                # of the thread's own. The body has arrived: nothing of it is the other loop's.
                return asyncio.run(handle_parsed(request))

            return await run_sync(handle_long, limiter=_few_at_a_time())

        return handle_json


class _JsonRequest(Request):
    """A request whose JSON is parsed once, by FastAPI, which says what is wrong with it."""

    async def json(self) -> Any:
        """Return what the body holds; refuse two fields of one name."""
        return json.loads(await self.body(), object_pairs_hook=_object)


def _few_at_a_time() -> CapacityLimiter:
    """Return what counts the long bodies that are read in the running event loop."""
    try:
        return _limiter.get()
    except LookupError:
        limiter = CapacityLimiter(MOST_LONG)
        _limiter.set(limiter)
        return limiter


def _require_json(request: Request) -> None:
    refuse_content_coding(request)
    header = Header()
    header["content-type"] = request.headers.get("content-type", "")
    subtype = header.get_content_subtype()
    is_json = subtype == "json" or subtype.endswith("+json")
    if header.get_content_maintype() != "application" or not is_json:
        raise ProblemError(
            ProblemCode.UNSUPPORTED_MEDIA_TYPE,
            "This endpoint takes JSON; set Content-Type: application/json.",
        )


async def _read_at_most(request: Request, limit: int) -> None:
    """Read the whole body into the request, where every later reader finds it."""
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > limit:
        raise _too_large(limit)
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                raise _too_large(limit)
    except ClientDisconnect as error:
        # Nobody is there to read it; the log is not to call it a mistake of ours.
        message = f"The body ended after {len(body)} bytes."
        raise ProblemError(ProblemCode.INVALID_REQUEST, message) from error
    # Where Request.body() keeps what it has read; there is no public way to hand it over.
    request._body = bytes(body)


def _require_utf_8(body: bytes) -> None:
    """Refuse UTF-16 and UTF-32, which the parser would take, and in which a byte means nothing."""
    if b"\0" in body:
        raise ProblemError(
            ProblemCode.VALIDATION_FAILED,
            "The body cannot be read as JSON: that is UTF-8, without the byte 0 (RFC 8259).",
        )


def _refuse_countless(body: bytes) -> None:
    """Refuse a body of more objects, arrays and texts than anything has that is taken here.

    They are counted in its bytes, in a hundredth of the time that it takes to make them.
    """
    plain = body.replace(rb"\\", b"").replace(rb"\"", b"")
    if plain.count(b'"') <= 2 * MOST_TEXTS:
        # Every second piece lies within a text.
        outside = b"".join(plain.split(b'"')[::2])
        if outside.count(b"{") <= MOST_OBJECTS and outside.count(b"[") <= MOST_ARRAYS:
            return
    raise ProblemError(
        ProblemCode.VALIDATION_FAILED,
        f"A JSON request has at most {MOST_OBJECTS} objects, {MOST_ARRAYS} arrays and {MOST_TEXTS} "
        "texts, names of fields among them.",
    )


def _object(fields: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object; refuse one with two fields of one name, of which one would be dropped."""
    made = dict(fields)
    if len(made) < len(fields):
        [(name, _), *_] = Counter(name for name, _ in fields).most_common(1)
        raise ProblemError(
            ProblemCode.VALIDATION_FAILED,
            f"An object of the body has two fields {json.dumps(name[:80])}: leave one out.",
        )
    return made


def _too_large(limit: int) -> ProblemError:
    return ProblemError(
        ProblemCode.PAYLOAD_TOO_LARGE,
        f"A JSON request may hold {limit} bytes at most, set by VNCE_MAX_JSON_BYTES.",
        # The rest of the body is not read, so the connection cannot be used again.
        headers={"Connection": "close"},
    )

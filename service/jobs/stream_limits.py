"""How many event streams may be open: each is a connection, and wakes twice a second."""

import re
from collections import Counter

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from service.http import error_handlers
from service.http.problems import ProblemCode, ProblemError
from service.http.root_path import route_path
from service.settings import Settings

_STREAM = re.compile("/v1/jobs/[^/]+/events$")


class StreamLimitMiddleware:
    """Answers 429 to a key that has as many event streams open as it may, 503 if all have.

    For requests that the gate has let in. All of whom no keys are asked are one. Per process: of
    several API processes each allows as many.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._most_per_key = settings.max_streams
        self._most = settings.max_streams_in_all
        self._open: Counter[str | None] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or not _STREAM.match(route_path(scope)):
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        key_id: str | None = request.state.identity.key_id
        try:
            self._refuse_too_many(key_id)
        except ProblemError as error:
            answer = await error_handlers.answer(request, error)
            await answer(scope, receive, send)
            return
        self._open[key_id] += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self._open[key_id] -= 1
            if not self._open[key_id]:
                del self._open[key_id]

    def _refuse_too_many(self, key_id: str | None) -> None:
        headers = {"Retry-After": error_handlers.RETRY_AFTER_SECONDS}
        if self._open[key_id] >= self._most_per_key:
            raise ProblemError(
                ProblemCode.TOO_MANY_REQUESTS,
                f"{'This process' if key_id is None else 'This API key'} already has "
                f"{self._most_per_key} open event streams, the maximum (VNCE_MAX_STREAMS); close "
                "one, or ask for the job itself now and then.",
                headers=headers,
            )
        if self._open.total() >= self._most:
            raise ProblemError(
                ProblemCode.UNAVAILABLE,
                f"This process already has {self._most} open event streams, the maximum "
                "(VNCE_MAX_STREAMS_IN_ALL); ask for the job itself now and then.",
                headers=headers,
            )

"""The gate before every path: who asks, and whether they ask too often.

It stands before routing, so that a route cannot forget it and a body is not read from strangers.
"""

import math
import time

from anyio.to_thread import run_sync
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from service.db.database import Database
from service.http import error_handlers
from service.http.identity import ANYONE, Identity
from service.http.problems import ProblemCode, ProblemError
from service.http.root_path import route_path
from service.http.security_headers import DOCS_FILES_PATH, DOCS_PATH
from service.keys.identity import identify
from service.settings import Authentication, Settings

# What may be known to anybody: that the service is up, and how it is to be used.
OPEN_PATHS = frozenset(
    (
        "/livez",
        "/readyz",
        "/v1/version",
        "/openapi.json",
        DOCS_PATH,
        f"{DOCS_PATH}/oauth2-redirect",
    )
)


class GateMiddleware:
    """Lets a request pass once it is known who asks; the identity is in `request.state`.

    Answers 401 without a key that works, and 429 if it asks too often. Where no keys are required,
    a request without one is anyone's; one with a key is judged by it. What a key is for is the
    route's to ask: see `ScopedRoute`.
    """

    def __init__(
        self, app: ASGIApp, database: Database, settings: Settings, hash_key: str | None
    ) -> None:
        self.app = app
        self._database = database
        self._requires_keys = settings.authentication is Authentication.KEYS
        self._hash_key = hash_key
        # Per process: several API processes allow as many times as much.
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._rate = RateLimitItemPerMinute(settings.requests_per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or is_open(route_path(scope)):
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        try:
            identity = await self._identity(request)
            self._refuse_if_too_often(identity)
        except error_handlers.ANSWERED as error:
            answer = await error_handlers.answer(request, error)
            await answer(scope, receive, send)
            return
        request.state.identity = identity
        await self.app(scope, receive, send)

    async def _identity(self, request: Request) -> Identity:
        authorization = request.headers.get("authorization")
        if authorization is None and not self._requires_keys:
            return ANYONE
        if self._hash_key is None:
            raise ProblemError(
                ProblemCode.UNAUTHENTICATED,
                "This service takes no API keys; send no `Authorization`.",
            )
        return await run_sync(identify, self._database, self._hash_key, authorization)

    def _refuse_if_too_often(self, identity: Identity) -> None:
        if identity.key_id is None or self._limiter.hit(self._rate, identity.key_id):
            return
        window = self._limiter.get_window_stats(self._rate, identity.key_id)
        seconds = max(1, math.ceil(window.reset_time - time.time()))
        raise ProblemError(
            ProblemCode.TOO_MANY_REQUESTS,
            f"This API key may send {self._rate.amount} requests a minute; wait {seconds} s.",
            headers={"Retry-After": str(seconds)},
        )


def hash_key_of(settings: Settings) -> str | None:
    """Return what keys are hashed under, without which none can be told from another text.

    Raises `LookupError` if keys are required and it is not given.
    """
    is_needed = settings.authentication is Authentication.KEYS or settings.key_secret is not None
    return settings.hash_key if is_needed else None


def is_open(path: str) -> bool:
    """Return whether anybody may ask for this path."""
    return path in OPEN_PATHS or path.startswith(f"{DOCS_FILES_PATH}/")

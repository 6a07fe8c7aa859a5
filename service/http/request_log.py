"""One log line and one count for every request."""

import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.identity import Identity
from service.http.request_metrics import RequestMetrics

# Orchestrators and Prometheus ask every few seconds; only trouble with these is worth a line.
PROBES = ("/livez", "/readyz", "/metrics")
UNKNOWN_ROUTE = "unknown"

logger = logging.getLogger("service.requests")


class RequestLogMiddleware:
    """Log each request by its route's template, never by its path, and count it.

    The time is that until the answer began: how fast a client reads is its own business, and an
    event stream stays open for as long as its job runs.
    """

    def __init__(self, app: ASGIApp, metrics: RequestMetrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        # What an exception that nobody handles is answered with, outside this middleware.
        status = 500
        seconds: float | None = None

        async def send_and_note(message: Message) -> None:
            nonlocal status, seconds
            if message["type"] == "http.response.start":
                status, seconds = message["status"], time.perf_counter() - began
            await send(message)

        try:
            await self.app(scope, receive, send_and_note)
        finally:
            if seconds is None:
                seconds = time.perf_counter() - began
            self._tell(scope, status, seconds)

    def _tell(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", UNKNOWN_ROUTE)
        self.metrics.observe(scope["method"], route, status, seconds)
        fields = {
            "method": scope["method"],
            "route": route,
            "status": status,
            "milliseconds": round(1000 * seconds, 1),
        }
        if (client := scope.get("client")) is not None:  # none on a socket of the file system
            fields["client"] = client[0]
        # There is none for a request that the gate has not let in.
        identity: Identity | None = scope.get("state", {}).get("identity")
        if identity is not None and identity.key_id is not None:
            fields["key_id"] = identity.key_id
        level = logging.DEBUG if route in PROBES and status < 500 else logging.INFO
        logger.log(level, "request answered", extra=fields)

"""How the API is served: what every process that does so has in common."""

import uvicorn
from starlette.types import ASGIApp

from service.connection import BoundedConnection
from service.settings import Settings


def configuration(
    app: ASGIApp,
    settings: Settings,
    *,
    graceful_seconds: int,
    host: str = "127.0.0.1",
    port: int = 8000,
) -> uvicorn.Config:
    """Return what makes uvicorn serve the API.

    A stop waits `graceful_seconds` for requests in flight; event streams stay open for longer.
    """

    class Connection(BoundedConnection):
        silence_seconds = settings.silence_seconds
        max_connections = settings.max_connections

    return uvicorn.Config(
        app,
        host=host,
        port=port,
        # By h11, strict and bounded by itself; what uvicorn takes where it is installed is
        # quicker, and is neither: see decision 18.
        http=Connection,
        # Nothing here is a web socket, and a request that asks to become one stays what it is.
        ws="none",
        # We log requests ourselves.
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=graceful_seconds,
    )

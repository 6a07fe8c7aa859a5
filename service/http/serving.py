"""How the API is served: what every process that does so has in common."""

import logging
import resource

import uvicorn
from starlette.types import ASGIApp

from service.http.connection import BoundedConnection
from service.settings import Settings

# A connection may bring an upload, which is a file of its own.
FILES_PER_CONNECTION = 2
OTHER_FILES = 200

# Longer than clients keep a connection that rests, the proxy (20 s) and httpx (5 s) among them: who
# closes it last may send a request into its end.
KEEP_ALIVE_SECONDS = 30

logger = logging.getLogger("service")


def allow_open_files(settings: Settings) -> None:
    """Let this process open as many files as its connections may need, or say that it cannot.

    Shells and service managers allow 1,024 by habit, and more to those who ask.
    """
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = FILES_PER_CONNECTION * settings.max_connections + OTHER_FILES
    if allowed == resource.RLIM_INFINITY or allowed >= needed:
        return
    possible = needed if most == resource.RLIM_INFINITY else min(needed, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (possible, most))
    if possible < needed:
        logger.warning(
            "this process may open %d files and may need %d: raise the limit (ulimit -Hn), or "
            "lower VNCE_MAX_CONNECTIONS",
            possible,
            needed,
        )


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
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=graceful_seconds,
    )

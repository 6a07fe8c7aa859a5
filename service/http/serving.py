"""How the API is served: what every process that does so has in common."""

import uvicorn
from starlette.types import ASGIApp

from service.settings import Settings

# Longer than clients keep a connection that rests, the proxy (20 s) and httpx (5 s) among them: who
# closes it last may send a request into its end.
KEEP_ALIVE_SECONDS = 30
# Of what is kept of a request that has not come whole: its head, a chunk's, or its trailers.
MOST_HEAD_BYTES = 64 * 1024


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
    Clients that others must not wait for are a proxy's work: see decision 27.
    """
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        # Strict, and bounded by itself; what uvicorn takes where it is installed is quicker, and is
        # neither: see decision 18.
        http="h11",
        h11_max_incomplete_event_size=MOST_HEAD_BYTES,
        # Nothing here is a web socket, and a request that asks to become one stays what it is.
        ws="none",
        # We log requests ourselves.
        log_config=None,
        access_log=False,
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=graceful_seconds,
    )

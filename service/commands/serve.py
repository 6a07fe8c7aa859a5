"""`python -m service serve` serves the API as `VNCE_*` variables describe it, logging JSON."""

import argparse
import socket

import uvicorn

from service.app import create_app_from_environment
from service.http.serving import configuration
from service.settings import Settings

# Less than a container has until it is killed.
GRACEFUL_SECONDS = 5


def main() -> None:
    """Serve until a signal says to stop."""
    parser = argparse.ArgumentParser(prog="python -m service serve", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", default=8000, type=int, help="port to listen on (%(default)s)")
    parser.add_argument("--fd", type=int, help="instead: a socket that already listens")
    arguments = parser.parse_args()
    app = create_app_from_environment()
    settings: Settings = app.state.settings
    config = configuration(
        app,
        settings,
        host=arguments.host,
        port=arguments.port,
        graceful_seconds=GRACEFUL_SECONDS,
    )
    sockets = None if arguments.fd is None else [socket.socket(fileno=arguments.fd)]
    uvicorn.Server(config).run(sockets=sockets)

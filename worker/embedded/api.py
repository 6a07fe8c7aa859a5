"""`python -m worker.embedded.api FD` serves the API on a socket that listens already.

The launcher binds the socket, so that a taken port is its error, port 0 works, and connections
wait in the socket while this process is restarted.

On the loopback interface no API key is asked for unless `--require-keys` says so: whoever is on
the machine is trusted. A web page that they look at must not get in by that door.
"""

import socket
import sys

import uvicorn

from service.app import create_app_from_environment
from service.http.serving import configuration
from service.settings import Authentication, Settings
from worker.embedded.origin_guard import guard_origin

# Event streams stay open until their job ends; a stop does not wait for them.
SHUTDOWN_SECONDS = 1


def main() -> None:
    """Serve until a signal says to stop."""
    listening = socket.socket(fileno=int(sys.argv[1]))
    app = create_app_from_environment()
    settings: Settings = app.state.settings
    if settings.authentication is Authentication.NONE:
        guard_origin(app)
    config = configuration(app, settings, graceful_seconds=SHUTDOWN_SECONDS)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()

"""How commands reach the service that the user names."""

import os

from worker.client import Client

# In the environment: on a command line it would be for all to see.
KEY_VARIABLE = "VNCE_API_KEY"


def connect(url: str) -> Client:
    """Return a client of the service at `url`, with the environment's API key if it has one."""
    return Client.connect(url, os.environ.get(KEY_VARIABLE))

"""How commands reach the service that the user names."""

import os

import typer

from worker.cli.client import Client

# In the environment: on a command line it would be for all to see.
KEY_VARIABLE = "VNCE_API_KEY"


def connect(url: str) -> Client:
    """Return a client of the service at `url`, with the environment's API key if it has one.

    Raises `typer.BadParameter`, which does not show it, for a text that no header can carry.
    """
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise typer.BadParameter(f"{KEY_VARIABLE} holds characters that no API key has")
    return Client.connect(url, key)

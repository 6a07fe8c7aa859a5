"""The secret under which an embedded service hashes its API keys: a file in the data folder."""

import fcntl
import os
import secrets
from pathlib import Path

from service.settings import MIN_HASH_KEY_LENGTH
from worker.embedded.serve_error import ServeError

FILE = "key-secret"


def of_folder(data_dir: Path) -> str:
    """Return the folder's secret; make it, readable by its owner alone, if there is none.

    Of several processes that make it at once one does, and the others are given the same. Raises
    `ServeError` for a file that is too short to be one.
    """
    file = data_dir / FILE
    # A file that was made and not written, by a process that was killed or had no room, is none.
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+", encoding="ascii") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        secret = opened.read().strip()
        if not secret:
            secret = secrets.token_hex(32)
            opened.write(secret)
            opened.flush()
            os.fsync(descriptor)
    if len(secret) < MIN_HASH_KEY_LENGTH:
        raise ServeError(
            f"{file} is damaged: it has fewer than {MIN_HASH_KEY_LENGTH} characters. Bring back a "
            "copy; or remove it, and make all API keys anew."
        )
    return secret

"""The secret under which an embedded service hashes its API keys: a file in the data folder."""

import os
import secrets
from pathlib import Path

FILE = "key-secret"


def of_folder(data_dir: Path) -> str:
    """Return the folder's secret; make it, readable by its owner alone, if there is none."""
    file = data_dir / FILE
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return file.read_text(encoding="ascii").strip()
    with os.fdopen(descriptor, "w", encoding="ascii") as opened:
        opened.write(secrets.token_hex(32))
    return file.read_text(encoding="ascii").strip()

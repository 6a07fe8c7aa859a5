"""`python -m service backup FILE` copies the SQLite database of `VNCE_DATABASE_URL` to a new file.

The service may go on meanwhile: the copy is the database of one moment, and is checked. PostgreSQL
has `pg_dump` for this; docs/operations.md has the commands for both, and how to restore.
"""

import argparse
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from sqlalchemy import make_url

from service.settings import Settings


class BackupError(RuntimeError):
    """Raised when there is no copy that could be relied on; the message says why."""


def back_up(database_url: str, target: Path) -> None:
    """Copy the database at a SQLite URL to the file `target`, which must not exist.

    The file appears when it is complete. Raises `BackupError`.
    """
    url = make_url(database_url)
    if url.get_backend_name() != "sqlite" or not url.database:
        raise BackupError("Only SQLite is copied by this command; for PostgreSQL use pg_dump.")
    source = Path(url.database)
    if not source.is_file():
        raise BackupError(f"There is no database {source}; set VNCE_DATABASE_URL to the one meant.")
    if target.exists():
        raise BackupError(f"{target} exists; name a new file.")
    unfinished = target.with_name(f"{target.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(source)) as original, closing(_new(unfinished)) as copy:
            original.backup(copy)
            (verdict,) = copy.execute("PRAGMA integrity_check").fetchone()
        if verdict != "ok":
            raise BackupError(f"The copy of {source} is damaged: {verdict}")
        unfinished.rename(target)
    except (sqlite3.Error, OSError) as error:
        raise BackupError(f"{source} could not be copied to {target}: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _new(file: Path) -> sqlite3.Connection:
    file.touch(mode=0o600)  # it holds every tenant's data
    return sqlite3.connect(file)


def main() -> None:
    """Copy what the environment names to what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m service backup", description=__doc__)
    parser.add_argument("file", type=Path, help="where the copy goes; must not exist")
    file = parser.parse_args().file
    try:
        back_up(Settings.from_environment().database_url, file)
    except BackupError as error:
        sys.exit(str(error))
    print(f"{file}: {file.stat().st_size:,} bytes")

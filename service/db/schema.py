"""The database's tables: brought to the newest revision, and compared with it."""

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from service.db.database import Database

MIGRATIONS = Path(__file__).parent / "migrations"


def configuration(connection: Connection) -> Config:
    """Return what Alembic's commands need to work on `connection`."""
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config


def upgrade(url: str) -> None:
    """Bring the database at `url` to the newest revision; do nothing if it is there."""
    database = Database(url, silence=None)
    try:
        with database.transaction() as session:
            command.upgrade(configuration(session.connection()), "head")
    finally:
        database.dispose()


def is_current(database: Database) -> bool:
    """Return whether the database answers and has the newest revision's tables."""
    with database.snapshot() as session:
        applied = MigrationContext.configure(session.connection()).get_current_heads()
    return frozenset(applied) == _newest()


@cache
def _newest() -> frozenset[str]:
    # Reading the scripts takes longer than all else that a readiness probe does.
    return frozenset(ScriptDirectory(str(MIGRATIONS)).get_heads())

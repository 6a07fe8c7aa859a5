"""`python -m service quota` lists how much each tenant has stored, the most first."""

import argparse
import sys

from sqlalchemy.exc import DBAPIError

from service.db.database import Database
from service.results.quota import stored_bytes
from service.settings import Settings


def main() -> None:
    """Print a line for each tenant that has something stored."""
    argparse.ArgumentParser(prog="python -m service quota", description=__doc__).parse_args()
    database = Database(Settings.from_environment().database_url)
    try:
        with database.snapshot() as session:
            for tenant, num_bytes in stored_bytes(session).most_common():
                print(f"{num_bytes:>16,}  {tenant}")
    except DBAPIError as error:
        sys.exit(f"The database must answer, and be migrated, for this: {error.orig}")
    finally:
        database.dispose()

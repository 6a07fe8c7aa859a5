"""`python -m service expire DAYS` deletes the results that are older than that.

The jobs stay, and say how to make their results again; asked for a result they answer 410.
Run it daily where results must not pile up.
"""

import argparse
import sys
import time

from sqlalchemy.exc import DBAPIError

from service.db.database import Database
from service.jobs import result_removal as removal
from service.settings import Settings

SECONDS_PER_DAY = 86_400
# SQLite lets whoever waits to write look again a tenth of a second later at the latest.
PAUSE_SECONDS = 0.1


def expire(database: Database, days: float) -> int:
    """Delete the results that are older than `days`; return how many there were.

    A transaction deletes a few of them: heartbeats, and whoever submits, write between two.
    """
    num_removed, last = 0, ""
    while True:
        with database.transaction() as session:
            removed = removal.remove_older_than(session, days * SECONDS_PER_DAY, after=last)
        num_removed += len(removed)
        if len(removed) < removal.MOST_AT_ONCE:
            return num_removed
        last = removed[-1]
        time.sleep(PAUSE_SECONDS)


def main() -> None:
    """Delete what the command line and `VNCE_DATABASE_URL` say."""
    parser = argparse.ArgumentParser(prog="python -m service expire", description=__doc__)
    parser.add_argument("days", type=float, help="age in days beyond which results are deleted")
    days = parser.parse_args().days
    if not days >= 0:
        parser.error(f"DAYS must be 0 or more, got {days}")
    database = Database(Settings.from_environment().database_url)
    try:
        print(f"{expire(database, days)} results deleted")
    except DBAPIError as error:
        sys.exit(f"The database must answer, and be migrated, for this: {error.orig}")
    finally:
        database.dispose()

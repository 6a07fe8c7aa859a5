"""`python -m service.expire DAYS` deletes the results that are older than that.

The jobs stay, and say how to make their results again; asked for a result they answer 410.
Run it daily where results must not pile up.
"""

import argparse

from service.database import Database
from service.results import removal
from service.settings import Settings

SECONDS_PER_DAY = 86_400


def expire(database: Database, days: float) -> int:
    """Delete the results that are older than `days`; return how many there were."""
    with database.transaction() as session:
        return len(removal.remove_older_than(session, days * SECONDS_PER_DAY))


def main() -> None:
    """Delete what the command line and `VNCE_DATABASE_URL` say."""
    parser = argparse.ArgumentParser(prog="python -m service.expire", description=__doc__)
    parser.add_argument("days", type=float, help="age in days beyond which results are deleted")
    days = parser.parse_args().days
    if days < 0:
        parser.error(f"DAYS must be 0 or more, got {days}")
    database = Database(Settings().database_url)
    print(f"{expire(database, days)} results deleted")
    database.dispose()


if __name__ == "__main__":
    main()

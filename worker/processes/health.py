"""`python -m worker.processes.health` tells an orchestrator whether processes do their round.

Asked is the database, to which every worker and dispatcher tells so: whether one on this machine,
or in this container, has done it lately.
"""

import argparse
import sys

from service.db.database import UNREACHABLE, Database
from service.monitoring import heartbeats
from worker.settings import WorkerSettings

# A worker that has lost its broker tries again at least every 32 seconds.
MAX_AGE_SECONDS = 60.0


def is_alive(database: Database, host: str) -> bool:
    """Return whether a process of this host has told of itself lately.

    While the database is away nobody can tell, and to restart processes for that would end what
    they do: they count as alive.
    """
    try:
        with database.snapshot() as session:
            ages = [
                process.age_seconds
                for process in heartbeats.processes(session)
                if process.identity.host == host
            ]
    except UNREACHABLE:
        return True
    return any(age < MAX_AGE_SECONDS for age in ages)


def main() -> None:
    """Exit with 0 if a process on this host is alive, else with 1."""
    argparse.ArgumentParser(
        prog="python -m worker.processes.health", description=__doc__
    ).parse_args()
    database = Database(WorkerSettings.from_environment().database_url)
    host = heartbeats.this_host()
    sys.exit(0 if is_alive(database, host) else f"no process on {host} has told of itself lately")


if __name__ == "__main__":
    main()

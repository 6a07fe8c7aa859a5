"""`python -m worker.processes.health` tells an orchestrator whether a process does its round.

Each touches a file after every round: a worker while its loop takes messages from the broker,
a dispatcher when database and broker have answered. A process that only exists lets it grow old.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from celery import Celery, bootsteps

from worker.settings import WorkerSettings

ROUND_SECONDS = 1.0
# A worker that has lost its broker tries again at least every 32 seconds.
MAX_AGE_SECONDS = 60.0


def watch_rounds(app: Celery, on_round: Callable[[], None]) -> None:
    """Have `on_round` called every second or so while the worker of `app` takes messages.

    Once for each app: Celery knows its steps by their names, and keeps one of each.
    """

    class RoundStep(bootsteps.StartStopStep):
        requires = ("celery.worker.consumer.tasks:Tasks",)

        def start(self, consumer: Any) -> None:  # Celery starts it again after each reconnection
            # Not yet for a first time: a broker may let it connect, again and again, and give it
            # no message.
            consumer.timer.call_repeatedly(ROUND_SECONDS, on_round)

    app.steps["consumer"].add(RoundStep)


def is_alive(alive_file: Path) -> bool:
    """Return whether the file was touched lately; one from the future tells nothing either."""
    try:
        return abs(time.time() - alive_file.stat().st_mtime) < MAX_AGE_SECONDS
    except FileNotFoundError:
        return False


def main() -> None:
    """Exit with 0 if the process that shares this one's settings is alive, else with 1."""
    argparse.ArgumentParser(
        prog="python -m worker.processes.health", description=__doc__
    ).parse_args()
    alive_file = WorkerSettings.from_environment().alive_file
    if alive_file is None:
        sys.exit("VNCE_ALIVE_FILE must name the file that the process touches")
    sys.exit(0 if is_alive(alive_file) else f"{alive_file} was not touched lately")


if __name__ == "__main__":
    main()

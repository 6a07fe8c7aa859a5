"""Processes of a worker that have ended are replaced at once.

Celery looks for them when one lets go of its files, often a moment before it has ended, and else
every five seconds (its issue 9588): a worker stood still for as long after each hundred jobs.
"""

from typing import Any

from celery import Celery, bootsteps

LOOK_SECONDS = 0.1


def replace_at_once(app: Celery) -> None:
    """Have the worker of `app` look ten times a second for processes that have ended.

    Once for each app: Celery knows its steps by their names, and keeps one of each.
    """

    class ReplacementStep(bootsteps.StartStopStep):
        requires = ("celery.worker.consumer.tasks:Tasks",)

        def start(self, consumer: Any) -> None:  # Celery starts it again after each reconnection
            self._entry = consumer.timer.call_repeatedly(LOOK_SECONDS, consumer.pool.maintain_pool)

        def stop(self, consumer: Any) -> None:
            self._entry.cancel()

    app.steps["consumer"].add(ReplacementStep)

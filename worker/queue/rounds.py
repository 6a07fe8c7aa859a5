"""Whether a worker takes messages from the broker: it does a round every second."""

from collections.abc import Callable
from typing import Any

from celery import Celery, bootsteps

ROUND_SECONDS = 1.0


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

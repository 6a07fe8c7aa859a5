"""`python -m worker` runs the jobs of the queue until SIGTERM, as `VNCE_*` variables say."""

import argparse
import sys
from typing import Any

from celery import signals

from service import logs
from worker.processes import threads
from worker.processes.pulse import Pulse
from worker.queue.broker import Broker
from worker.queue.celery_app import create_celery
from worker.queue.consumer import patient_consumer
from worker.queue.replacement import replace_at_once
from worker.queue.rounds import watch_rounds
from worker.settings import WorkerSettings

SETTINGS = WorkerSettings.from_environment()
threads.limit(SETTINGS.threads_per_process)

from worker.queue import tasks  # noqa: E402 - loads NumPy and torch, which read the limit at import


def use_our_logs(**kwargs: Any) -> None:
    """Keep Celery from setting up logs of its own."""


def main() -> None:
    """Fork the processes and keep them running.

    On SIGTERM each hands its job back, the attempt not counted, and ends.
    """
    argparse.ArgumentParser(prog="python -m worker", description=__doc__).parse_args()
    logs.configure("worker")
    signals.setup_logging.connect(use_our_logs)
    app = create_celery(SETTINGS)
    pulse = Pulse()
    tasks.register(app, SETTINGS, pulse)

    watch_rounds(app, pulse.touch)
    replace_at_once(app)
    # Gossip, mingling and heartbeats let workers watch each other; ours are watched by the reaper.
    worker = app.Worker(
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        consumer_cls=patient_consumer(Broker(SETTINGS.broker_url)),
    )
    worker.start()
    sys.exit(worker.exitcode)


if __name__ == "__main__":
    main()

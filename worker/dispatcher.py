"""`python -m worker.dispatcher` carries messages from the outbox to the broker, and reaps.

It is the only process that writes to the broker. Several may run at once and share the messages.
"""

import argparse
import logging
import signal
import threading
import time

from celery import Celery
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from service import logs
from service.db import counters
from service.db.database import UNREACHABLE, Database
from service.jobs import checkpoints, outbox, reaping, removal
from service.monitoring import heartbeats
from service.monitoring.records import ProcessKind
from worker.processes.process_heartbeat import ProcessHeartbeat
from worker.processes.pulse import Pulse
from worker.queue.broker import Broker
from worker.queue.celery_app import TASK_NAME, create_celery
from worker.settings import WorkerSettings

BATCH_SIZE = 100
LONGEST_PAUSE_SECONDS = 2.0
# How often it is told that workers refuse jobs, which few do for one round or two.
REFUSALS_TOLD_SECONDS = 60.0
# A broker that is away, hangs, or refuses because it is full.
BROKER_TROUBLE = (KombuError, RedisError)

logger = logging.getLogger("worker")


class Dispatcher:
    """Sends what waits in the outbox, and does something about lost workers and messages."""

    def __init__(self, database: Database, app: Celery, settings: WorkerSettings) -> None:
        self._database = database
        self._app = app
        self._broker = Broker(settings.broker_url)
        self._settings = settings
        # Whether deleted jobs are left to be removed: then some are in every round.
        self._has_hidden = False
        # Since when every round has found jobs that workers had refused; None: the last had not.
        self._refused_since: float | None = None
        self.pulse = Pulse()

    def run(self, stopping: threading.Event) -> None:
        """Work until `stopping` is set; outlast a database or a broker that is away."""
        self._broker.warn_if_broker_evicts()
        reap_at = time.monotonic()
        pause = self._settings.outbox_seconds
        while not stopping.wait(pause):
            self.pulse.touch()
            try:
                if time.monotonic() >= reap_at:
                    reap_at = time.monotonic() + self._settings.reaper_seconds
                    self.reap()
                    self.tidy()
                    self.tell_refusals()
                elif self._has_hidden:
                    self.remove_hidden()
                has_sent = self.send_pending()
                pause = 0.0 if has_sent else self._settings.outbox_seconds
            except (*UNREACHABLE, *BROKER_TROUBLE) as error:
                logger.warning("database or broker does not answer, trying again: %s", error)
                pause = min(max(2 * pause, self._settings.outbox_seconds), LONGEST_PAUSE_SECONDS)

    def send_pending(self) -> bool:
        """Send some messages that are due, and note what the broker has taken.

        Returns whether there were any: then there may be more, and where messages never cease the
        loop still gets to all else. No transaction is open while a message travels: a broker that
        hangs must not hold a lock that submissions wait for. Raises what the broker raises; unsent
        messages stay.
        """
        with self._database.transaction() as session:
            batch = outbox.reserve(session, BATCH_SIZE, self._settings.max_running_jobs)
        num_sent = 0
        try:
            for job_id in batch.job_ids:
                self._app.send_task(TASK_NAME, args=[job_id])
                num_sent += 1
        finally:
            if batch.job_ids:
                with self._database.transaction() as session:
                    outbox.settle(session, batch, num_sent)
        return bool(batch.job_ids)

    def reap(self) -> None:
        """Give jobs of lost workers to others, and wake jobs whose message was lost."""
        with self._database.transaction() as session:
            reaped = reaping.requeue_expired(session)
        for what, job_ids in vars(reaped).items():
            for job_id in job_ids:
                logger.warning(
                    "job %s: its worker was lost; now %s", job_id, what, extra={"job_id": job_id}
                )
        num_messages = self._broker.num_messages()
        with self._database.transaction() as session:
            resent = reaping.resend_stale(session, self._settings.resend_seconds, num_messages)
        for job_id in resent:
            logger.warning(
                "job %s: its message may be lost; sending another",
                job_id,
                extra={"job_id": job_id},
            )

    def tidy(self) -> None:
        """Forget lost processes, deleted jobs and ended ones' checkpoints; compact the counters."""
        with self._database.transaction() as session:
            checkpoints.remove_ended(session)
            heartbeats.forget_lost(session)
            counters.compact(session)
        self.remove_hidden()

    def remove_hidden(self) -> None:
        """Remove a few of the jobs that were deleted, between which others may write."""
        with self._database.transaction() as session:
            self._has_hidden = removal.remove_hidden(session) > 0

    def tell_refusals(self) -> None:
        """Warn once a minute while workers refuse jobs that they are sent, for want of a slot.

        Seldom one is refused by chance; for a minute they are where this limit is not theirs.
        """
        with self._database.snapshot() as session:
            num_refused = outbox.num_delayed(session)
        since, now = self._refused_since, time.monotonic()
        if num_refused == 0:
            self._refused_since = None
        elif since is None:
            self._refused_since = now
        elif now - since >= REFUSALS_TOLD_SECONDS:
            self._refused_since = now
            logger.warning(
                "workers have no slot for %d jobs that they were sent: VNCE_MAX_RUNNING_JOBS is to"
                " be the same for every process, and is %s here",
                num_refused,
                self._settings.max_running_jobs or "not set",
            )


def main() -> None:
    """Dispatch until SIGTERM or SIGINT."""
    argparse.ArgumentParser(prog="python -m worker.dispatcher", description=__doc__).parse_args()
    logs.configure("dispatcher")
    settings = WorkerSettings.from_environment()
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *arguments: stopping.set())
    database = Database(settings.database_url)
    dispatcher = Dispatcher(database, create_celery(settings), settings)
    with ProcessHeartbeat(database, ProcessKind.DISPATCHER, dispatcher.pulse):
        dispatcher.run(stopping)
    database.dispose()


if __name__ == "__main__":
    main()

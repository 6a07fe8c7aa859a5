"""The one task that the queue carries."""

from functools import cache
from typing import Any

from celery import Celery, signals

from service import logs
from service.db.database import Database
from service.monitoring.records import ProcessKind
from worker.processes.process_heartbeat import ProcessHeartbeat
from worker.processes.pulse import Pulse
from worker.processes.shutdown import ShutdownFlag
from worker.queue.celery_app import TASK_NAME
from worker.run_job import run_job
from worker.settings import WorkerSettings


def register(app: Celery, settings: WorkerSettings, pulse: Pulse) -> None:
    """Add the task to `app`, in the process that will fork the workers and has this `pulse`."""
    shutdown = ShutdownFlag()

    def on_shutdown(**kwargs: Any) -> None:
        shutdown.set()

    signals.worker_shutting_down.connect(on_shutdown, weak=False)

    @cache
    def database() -> Database:
        # First asked for after the fork, so each process has connections of its own.
        return Database(settings.database_url)

    @cache
    def heartbeat() -> ProcessHeartbeat:
        return ProcessHeartbeat(database(), ProcessKind.WORKER, pulse)

    def on_process_start(**kwargs: Any) -> None:
        heartbeat().start()

    def on_process_end(**kwargs: Any) -> None:
        heartbeat().stop()

    signals.worker_process_init.connect(on_process_start, weak=False)
    signals.worker_process_shutdown.connect(on_process_end, weak=False)

    @app.task(name=TASK_NAME)
    def run(job_id: str) -> None:
        with logs.bound(job_id=job_id), heartbeat().at_work_on(job_id):
            run_job(job_id, database(), settings, is_shutting_down=shutdown.is_set)

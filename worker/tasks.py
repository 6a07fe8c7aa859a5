"""The one task that the queue carries."""

from functools import cache
from typing import Any

from celery import Celery, signals

from service.database import Database
from worker.celery_app import TASK_NAME
from worker.runner import run_job
from worker.settings import WorkerSettings
from worker.shutdown import ShutdownFlag


def register(app: Celery, settings: WorkerSettings) -> None:
    """Add the task to `app`, in the process that will fork the workers."""
    shutdown = ShutdownFlag()

    def on_shutdown(**kwargs: Any) -> None:
        shutdown.set()

    signals.worker_shutting_down.connect(on_shutdown, weak=False)

    @cache
    def database() -> Database:
        # First asked for by a task, so each forked process has connections of its own.
        return Database(settings.database_url)

    @app.task(name=TASK_NAME)
    def run(job_id: str) -> None:
        run_job(job_id, database(), settings, is_shutting_down=shutdown.is_set)

"""The Celery application: how wake-up messages travel, and how worker processes are run.

The broker is a hint (see `docs/decisions`): messages are acknowledged before the work begins,
nothing is redelivered, no result is kept. What makes a job finish is its row in the database.
"""

from celery import Celery

from service.monitoring.broker import QUEUE_NAME
from worker.settings import WorkerSettings

TASK_NAME = "vnce.run_job"
# A broker that is dead or frozen holds the caller for at most about
# (1 + PUBLISH_RETRIES) * SOCKET_SECONDS.
SOCKET_SECONDS = 3.0
PUBLISH_RETRIES = 1
# The heartbeat thread ends a job that runs too long; Celery only ends a process whose thread
# has died or hangs.
TIME_LIMIT_MARGIN_SECONDS = 600
# A new process costs a fork and bounds what any library leaks.
JOBS_PER_PROCESS = 100
# A process that has held more than this share of what a job may hold gives way to a new one.
HELD_SHARE = 0.5


def create_celery(settings: WorkerSettings) -> Celery:
    """Return the application on the settings' broker; it connects on first use."""
    app = Celery("vnce", broker=_kombu_url(settings.broker_url), set_as_current=False)
    app.conf.update(
        task_default_queue=QUEUE_NAME,
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=False,
        task_time_limit=settings.job_seconds + TIME_LIMIT_MARGIN_SECONDS,
        task_publish_retry=True,
        task_publish_retry_policy={
            "max_retries": PUBLISH_RETRIES,
            "interval_start": 0.1,
            "interval_step": 0.1,
            "interval_max": 0.5,
        },
        broker_connection_timeout=SOCKET_SECONDS,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        # A broker that refuses, being full or for good, is waited for as one that is away.
        broker_channel_error_retry=True,
        broker_pool_limit=2,
        broker_transport_options={
            "socket_timeout": SOCKET_SECONDS,
            "socket_connect_timeout": SOCKET_SECONDS,
            "socket_keepalive": True,
            "health_check_interval": 5,
        },
        worker_concurrency=settings.concurrency,
        worker_max_tasks_per_child=JOBS_PER_PROCESS,
        worker_max_memory_per_child=_kilobytes_per_child(settings.job_memory_bytes),
        # Take a message only when a process is free: a job must not wait behind a long one
        # while another worker idles.
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,
        worker_enable_remote_control=False,
        # Concerns late acknowledgement only; said so that Celery does not warn about its default.
        worker_cancel_long_running_tasks_on_connection_loss=True,
        worker_send_task_events=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
    )
    return app


def _kilobytes_per_child(job_memory_bytes: int | None) -> int | None:
    if job_memory_bytes is None:
        return None
    return max(1, int(HELD_SHARE * job_memory_bytes) // 1024)


def _kombu_url(broker_url: str) -> str:
    # redis-py and kombu spell the URL of a Unix socket differently.
    scheme, separator, rest = broker_url.partition("://")
    return f"redis+socket://{rest}" if scheme == "unix" else scheme + separator + rest

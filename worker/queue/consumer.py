"""The part of a worker that takes messages: it waits for a broker that refuses to work."""

import logging
import time
from typing import Any

from celery.worker.consumer import Consumer
from celery.worker.state import maybe_shutdown
from redis.exceptions import RedisError

from worker.queue.broker import Broker

PAUSE_SECONDS = 1.0
# How often it is said that it still waits.
TOLD_SECONDS = 30.0

logger = logging.getLogger("worker")


def patient_consumer(broker: Broker) -> type[Any]:
    """Return Celery's consumer, made to wait before it connects while the broker refuses.

    Celery waits for a broker that is away; one that answers and has no room ends the worker, since
    Celery cannot take a lock there, or has it connect several times a second.
    """

    class PatientConsumer(Consumer):
        def connect(self) -> Any:
            wait_while_refusing(broker)
            return super().connect()

    return PatientConsumer


def wait_while_refusing(broker: Broker) -> None:
    """Return once the broker takes messages, or does not answer at all.

    Raises what ends the worker if that was asked to stop meanwhile.
    """
    told_at: float | None = None
    while True:
        try:
            reason = broker.refusal()
        except RedisError:
            return
        if reason is None:
            return
        if told_at is None or time.monotonic() - told_at >= TOLD_SECONDS:
            told_at = time.monotonic()
            logger.warning("the broker takes no messages, waiting for it: %s", reason)
        time.sleep(PAUSE_SECONDS)
        maybe_shutdown()

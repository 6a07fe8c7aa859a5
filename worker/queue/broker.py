"""What dispatcher and workers ask the queue's server directly."""

import logging

from redis.exceptions import RedisError

from service.monitoring.broker import QUEUE_NAME, client_of, refusal
from worker.queue.celery_app import SOCKET_SECONDS

logger = logging.getLogger("worker")


class Broker:
    """A Redis or Valkey server by its URL; methods raise `RedisError` if it does not answer."""

    def __init__(self, url: str) -> None:
        # Whoever asks comes back by itself; the client's own retries would hold up its round.
        self._client = client_of(url, SOCKET_SECONDS)

    def refusal(self) -> str | None:
        """Return why the server takes no messages, though it answers; None if it does."""
        return refusal(self._client)

    def num_messages(self) -> int:
        """Return how many messages wait to be taken by a worker."""
        return int(self._client.llen(QUEUE_NAME))

    def warn_if_broker_evicts(self) -> None:
        """Log a warning if the server may drop messages when its memory is full."""
        try:
            policy = self._client.config_get("maxmemory-policy").get("maxmemory-policy")
        except RedisError:
            return  # away, or a hosted server that does not show its configuration
        if policy not in (None, "noeviction"):
            logger.warning(
                "the broker's maxmemory-policy is %s: it may drop messages, and jobs then wait "
                "until they are sent again; set it to noeviction",
                policy,
            )

"""What can be asked of the queue's server, Redis or Valkey, without changing the queue."""

from contextlib import suppress

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError, ResponseError
from redis.retry import Retry

# The list that carries messages to workers.
QUEUE_NAME = "vnce.jobs"
# No list has this name: a push to it, if there is one, changes nothing.
_NO_LIST = "vnce.no-list"


def client_of(url: str, seconds: float) -> Redis:
    """Return a client of the server that waits so long for it, and does not try again by itself."""
    return Redis.from_url(
        url,
        socket_timeout=seconds,
        socket_connect_timeout=seconds,
        retry=Retry(NoBackoff(), retries=0),
    )


def refusal(client: Redis) -> str | None:
    """Return why the server takes no messages, such as that it is full; None if it does.

    Others: it is a replica, the queue is not for this user, its name is that of something else.
    Raises `RedisError` if it does not answer.
    """
    try:
        client.llen(QUEUE_NAME)
        with suppress(NoPermissionError):  # it says so of this name only
            client.lpushx(_NO_LIST, "")
    except ResponseError as error:
        return str(error)
    return None

"""What can be asked of the queue's server, Redis or Valkey, without touching the queue."""

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError, ResponseError
from redis.retry import Retry

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
    """Return why the server takes no messages: its memory or its disk is full; None if it does.

    Raises `RedisError` if it does not answer.
    """
    try:
        client.lpushx(_NO_LIST, "")
    except NoPermissionError:
        return None  # it says so of this name only
    except ResponseError as error:
        return str(error)
    return None

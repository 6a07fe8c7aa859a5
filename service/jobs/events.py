"""A job's changes as server-sent events."""

import time
from collections.abc import AsyncIterator

from service.db.database import Database
from service.jobs.watch import watch_of

KEEP_ALIVE_SECONDS = 15.0
KEEP_ALIVE = b": keep-alive\n\n"


async def follow(
    database: Database, job_id: str, last_event_id: str | None, key_id: str | None = None
) -> AsyncIterator[bytes]:
    """Yield the job each time it has changed, until it is in a final state or gone.

    The client already has the state that `last_event_id` names. The stream also ends with the
    API key `key_id` that opened it, and with a database that is away; coming back, with the id of
    the last event that it had, the client is told why.
    """
    watch = watch_of(database)
    seen = last_event_id
    spoke_at = time.monotonic()
    job = await watch.first(job_id, key_id)
    while job is not None:
        if job.event_id != seen:
            seen, spoke_at = job.event_id, time.monotonic()
            yield job.event
        if job.is_terminal:
            return
        if time.monotonic() - spoke_at >= KEEP_ALIVE_SECONDS:
            spoke_at = time.monotonic()
            yield KEEP_ALIVE
        job = await watch.next(job_id, key_id)

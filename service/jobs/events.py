"""A job's changes as server-sent events.

The stream holds neither a thread nor a connection to the database between two looks.
"""

import hashlib
import json
from collections.abc import AsyncIterator

from anyio import sleep
from anyio.to_thread import run_sync

from service.database import UNREACHABLE, Database
from service.jobs import lifecycle, repository
from service.jobs.schemas import JobRead
from service.keys import repository as keys

POLL_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 15.0
KEEP_ALIVE = b": keep-alive\n\n"


def event_id(job: JobRead) -> str:
    """Return a short name of this state of the job; equal states have equal names."""
    return hashlib.sha256(job.model_dump_json().encode()).hexdigest()[:16]


async def follow(
    database: Database, job_id: str, last_event_id: str | None, key_id: str | None = None
) -> AsyncIterator[bytes]:
    """Yield the job each time it has changed, until it is in a final state or gone.

    The client already has the state that `last_event_id` names. The stream also ends with the
    API key `key_id` that opened it; coming back, the client is told why.
    """
    seen = last_event_id
    silent_for = 0.0
    while True:
        try:
            job = await run_sync(_look, database, job_id, key_id)
        except UNREACHABLE:
            return  # the client comes back with the id of the last event it had
        if job is None:
            return
        if (current := event_id(job)) != seen:
            seen, silent_for = current, 0.0
            yield _event(current, job)
        if job.state.is_terminal:
            return
        if silent_for >= KEEP_ALIVE_SECONDS:
            silent_for = 0.0
            yield KEEP_ALIVE
        await sleep(POLL_SECONDS)
        silent_for += POLL_SECONDS


def _look(database: Database, job_id: str, key_id: str | None) -> JobRead | None:
    with database.snapshot() as session:
        if key_id is not None and not keys.still_works(session, key_id):
            return None
        # Kept at hand, or it would be read again, when it may be gone.
        job = repository.get(session, job_id)
        return None if job is None else lifecycle.described(session, job_id)


def _event(identifier: str, job: JobRead) -> bytes:
    data = json.dumps(job.model_dump(mode="json"), allow_nan=False)
    return f"event: job\nid: {identifier}\ndata: {data}\n\n".encode()

"""A stream of events tells each change once, and waits without holding anything."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack

import pytest
from anyio.to_thread import current_default_thread_limiter
from fastapi.testclient import TestClient
from sqlalchemy import QueuePool, event, update

from service.db.database import Database
from service.http.scopes import Scope
from service.jobs import events, leases, lifecycle, repository, watch
from service.jobs.leases import Progress
from service.keys import lifecycle as lifecycle_of_keys
from service.keys.records import ApiKeyRecord
from tests.waiting import PATIENCE_SECONDS

AddJob = Callable[..., str]


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Return the database of the client; the stream holds no SQL of its own."""
    return sqlite_url


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(events, "KEEP_ALIVE_SECONDS", 0.03)


def document(event: bytes) -> dict[str, object]:
    """Return the job in an event's text, which is of the form that browsers read."""
    name, identifier, data, *end = event.decode().split("\n")
    assert name == "event: job"
    assert identifier.startswith("id: ")
    assert end == ["", ""]
    return dict(json.loads(data.removeprefix("data: ")))


async def next_event(stream: AsyncIterator[bytes]) -> dict[str, object]:
    """Return the next job, keep-alives passed over."""
    async for chunk in stream:
        if chunk != events.KEEP_ALIVE:
            return document(chunk)
    raise AssertionError("the stream has ended")


@pytest.mark.usefixtures("_impatient")
def test_stream_tells_each_change_and_ends_with_the_job(
    database: Database, add_job: AddJob
) -> None:
    job_id = add_job()

    async def watch() -> list[dict[str, object]]:
        stream = events.follow(database, job_id, None)
        seen = [await next_event(stream)]
        with database.transaction() as session:
            taken = leases.claim(session, job_id, 60)
        assert taken is not None
        seen.append(await next_event(stream))
        with database.transaction() as session:
            leases.heartbeat(session, job_id, taken.token, 60, Progress("fit", 0.5, 1, -1.0))
        seen.append(await next_event(stream))
        with database.transaction() as session:
            leases.succeed(session, job_id, taken.token)
        seen.append(await next_event(stream))
        assert [chunk async for chunk in stream] == []
        return seen

    seen = asyncio.run(watch())
    assert [job["state"] for job in seen] == ["queued", "running", "running", "succeeded"]


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("ending", [{"revoked_at": 1.0}, {"expires_at": 1.0}])
def test_stream_ends_with_the_key_that_opened_it(
    database: Database, add_job: AddJob, ending: dict[str, float]
) -> None:
    job_id = add_job()
    with database.transaction() as session:
        key = lifecycle_of_keys.create(
            session, "k" * 32, name="x", scopes=[Scope.READ], expires_at=None
        )

    async def watch() -> list[bytes]:
        stream = events.follow(database, job_id, None, key.id)
        await next_event(stream)
        assert await anext(stream) == events.KEEP_ALIVE
        with database.transaction() as session:
            session.execute(update(ApiKeyRecord).values(**ending))
        return [chunk async for chunk in stream if chunk != events.KEEP_ALIVE]

    assert asyncio.run(asyncio.wait_for(watch(), PATIENCE_SECONDS)) == []


@pytest.mark.usefixtures("_impatient")
def test_silent_stream_is_kept_alive(database: Database, add_job: AddJob) -> None:
    job_id = add_job()

    async def watch() -> bytes:
        stream = events.follow(database, job_id, None)
        await next_event(stream)
        return await anext(stream)

    assert asyncio.run(watch()) == events.KEEP_ALIVE


@pytest.mark.usefixtures("_impatient")
def test_stream_of_a_deleted_job_ends(database: Database, add_job: AddJob) -> None:
    job_id = add_job()

    async def watch() -> list[bytes]:
        stream = events.follow(database, job_id, None)
        await next_event(stream)
        with database.transaction() as session:
            repository.request_cancellation(session, job_id)
            lifecycle.remove(session, job_id)
        return [chunk async for chunk in stream if chunk != events.KEEP_ALIVE]

    assert asyncio.run(watch()) == []


@pytest.mark.usefixtures("_impatient")
def test_stream_ends_where_no_connection_becomes_free(
    database: Database, add_job: AddJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = add_job()
    pool = database.engine.pool
    assert isinstance(pool, QueuePool)
    monkeypatch.setattr(pool, "_timeout", 0.01)
    # All, those beyond its size too.
    num_connections = pool.size() + pool._max_overflow

    async def watch() -> list[bytes]:
        stream = events.follow(database, job_id, None)
        await next_event(stream)
        with ExitStack() as held:
            for _ in range(num_connections):
                held.enter_context(database.engine.connect())
            return [chunk async for chunk in stream if chunk != events.KEEP_ALIVE]

    assert asyncio.run(watch()) == []


@pytest.mark.usefixtures("_impatient")
def test_any_number_of_streams_is_one_look(database: Database, add_job: AddJob) -> None:
    job_ids = [add_job() for _ in range(3)]
    statements: list[str] = []

    def note(connection: object, cursor: object, statement: str, *others: object) -> None:
        statements.append(statement)

    async def watch_all() -> list[dict[str, object]]:
        streams = [events.follow(database, job_id, None) for job_id in job_ids * 20]
        await asyncio.gather(*(next_event(stream) for stream in streams))
        event.listen(database.engine, "before_cursor_execute", note)
        with database.transaction() as session:
            repository.request_cancellation(session, job_ids[0])
        statements.clear()
        ends = await asyncio.gather(*(next_event(stream) for stream in streams[::3]))
        for stream in streams:
            await stream.aclose()
        return ends

    ends = asyncio.run(watch_all())
    assert {end["state"] for end in ends} == {"cancelled"}
    # BEGIN, what changes, and the one job that has; a look before that may have seen nothing new.
    assert len([statement for statement in statements if "FROM jobs" in statement]) <= 3


def test_waiting_streams_hold_neither_threads_nor_connections(
    database: Database, add_job: AddJob
) -> None:
    job_id = add_job()

    async def watch() -> tuple[int, int]:
        streams = [events.follow(database, job_id, None) for _ in range(100)]
        await asyncio.gather(*(next_event(stream) for stream in streams))
        waiting = [asyncio.ensure_future(anext(stream)) for stream in streams]
        await asyncio.sleep(0.1)  # every stream now waits for its next look
        pool = database.engine.pool
        assert isinstance(pool, QueuePool)
        held = (pool.checkedout(), current_default_thread_limiter().borrowed_tokens)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return held

    assert asyncio.run(watch()) == (0, 0)


def test_client_that_comes_back_gets_only_what_is_new(
    client: TestClient, database: Database, add_job: AddJob
) -> None:
    job_id = add_job()
    with database.transaction() as session:
        repository.request_cancellation(session, job_id)
    address = f"/v1/jobs/{job_id}/events"
    answer = client.get(address)
    assert answer.headers["content-type"].startswith("text/event-stream")
    identifier = answer.text.split("\n")[1].removeprefix("id: ")
    assert document(answer.content)["state"] == "cancelled"
    again = client.get(address, headers={"Last-Event-ID": identifier})
    assert (again.status_code, again.content) == (204, b"")
    other = client.get(address, headers={"Last-Event-ID": "another"})
    assert other.content == answer.content

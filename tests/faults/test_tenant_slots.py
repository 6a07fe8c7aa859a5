"""A tenant with many jobs has no more of them run at a time than it may, and holds up nobody."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from sqlalchemy import select

from service.db.database import Database
from service.http.scopes import Scope
from service.jobs.records import JobRecord
from service.keys import lifecycle
from tests.faults.stack import Stack
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.faults]

HASH_KEY = "0123456789abcdef0123456789abcdef"
MOST = 2
NUM_JOBS = 50


def authorization(database: Database, tenant: str) -> dict[str, str]:
    """Return the headers of a new key of a tenant's."""
    scopes = [Scope.READ, Scope.SUBMIT]
    with database.of(tenant).transaction() as session:
        made = lifecycle.create(session, HASH_KEY, name="a key", scopes=scopes, expires_at=None)
    return {"Authorization": f"Bearer {made.token}"}


def most_at_once(spans: Iterable[tuple[float, float]]) -> int:
    """Return how many of these spans of time overlap at most."""
    steps = sorted([(end, -1) for _, end in spans] + [(start, 1) for start, _ in spans])
    number = most = 0
    for _, step in steps:
        number += step
        most = max(most, number)
    return most


@pytest.fixture
def stack(make_stack: Callable[[str], Stack], postgres_url: str) -> Stack:
    """Return a stack that asks for keys, with twice as many workers as a tenant may hold."""
    made = make_stack(postgres_url)
    environment = {
        "VNCE_MAX_RUNNING_JOBS": str(MOST),
        "VNCE_AUTHENTICATION": "keys",
        "VNCE_KEY_SECRET": HASH_KEY,
    }
    made.start_api(**environment)
    made.start_dispatcher(**environment)
    made.start_worker(**environment, VNCE_CONCURRENCY=str(2 * MOST))
    made.wait_until_ready()
    return made


def test_fifty_jobs_of_a_tenant_take_its_places_in_turn_while_another_s_job_starts_at_once(
    stack: Stack, short_job: Any
) -> None:
    many, one = (authorization(stack.database, tenant) for tenant in ("many", "one"))
    for _ in range(NUM_JOBS):
        stack.http.post("/v1/jobs", json=short_job, headers=many).raise_for_status()
    stack.http.post("/v1/jobs", json=short_job, headers=one).raise_for_status()

    def all_jobs() -> list[JobRecord]:
        with stack.database.snapshot() as session:
            return list(session.scalars(select(JobRecord)))

    def all_have_ended() -> bool:
        return all(job.finished_at is not None for job in all_jobs())

    wait_for(all_have_ended, "all jobs to end")
    jobs = all_jobs()
    assert {(job.state, job.attempt) for job in jobs} == {("succeeded", 1)}
    spans = {tenant: [] for tenant in ("many", "one")}
    for job in jobs:
        spans[job.tenant].append((job.started_at, job.finished_at))
    assert len(spans["many"]) == NUM_JOBS
    # From the commit of a claim to that of the end: the end's time is noted before its slot
    # is given to another.
    assert most_at_once(spans["many"]) == MOST
    [(start, _)] = spans["one"]
    still_to_begin = [begun for begun, _ in spans["many"] if begun > start]
    assert len(still_to_begin) > NUM_JOBS / 2

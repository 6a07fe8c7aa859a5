"""What is asked several times a second does not take longer with every job that has ended."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.orm import Session

from service.db.database import Database
from service.jobs import checkpoints, leases, outbox, queue, reaping, removal

pytestmark = pytest.mark.slow

AddJob = Callable[..., str]
NUM_ENDED = 100_000

DISPATCHERS_ROUND: dict[str, Callable[[Session], object]] = {
    "send": lambda session: outbox.settle(session, outbox.reserve(session, 100), 50),
    "send with a limit": lambda session: outbox.reserve(session, 100, most_running=2),
    "requeue": reaping.requeue_expired,
    "resend": lambda session: reaping.resend_stale(session, -1, num_in_queue=0),
    "tidy": checkpoints.remove_ended,
    "remove": removal.remove_hidden,
    "count refusals": outbox.num_delayed,
    "measure the queue": lambda session: queue.look(session, 2),
}


@pytest.fixture
def waiting(database: Database, add_job: AddJob) -> list[str]:
    """Return some jobs that wait among very many that have ended."""
    numbers = (
        f"generate_series(1, {NUM_ENDED}) AS numbers (i)"
        if database.engine.dialect.name == "postgresql"
        else f"(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <"
        f" {NUM_ENDED}) SELECT i FROM n)"
    )
    ended = text(
        "INSERT INTO jobs (id, kind, state, spec, created_at, woken_at, sent_at, finished_at,"
        " attempt, max_attempts, is_split, tenant) SELECT 'job_' || i, 'estimation', 'succeeded',"
        " '{}', i, i, i, i, 1, 3, false, 'default' FROM " + numbers
    )
    with database.transaction() as session:
        session.execute(ended)
    jobs = [add_job() for _ in range(150)]
    with database.transaction() as session:
        batch = outbox.reserve(session, 100)
        outbox.settle(session, batch, 100)
        assert leases.claim(session, jobs[0], lease_seconds=-1)
        assert leases.claim(session, jobs[1], lease_seconds=30)
        if database.engine.dialect.name == "postgresql":  # as its autovacuum does
            session.execute(text("ANALYZE"))
    return jobs


@contextmanager
def explained(database: Database) -> Iterator[list[str]]:
    """Yield the plans of all statements of the body."""
    plans: list[str] = []
    is_postgresql = database.engine.dialect.name == "postgresql"
    explain = "EXPLAIN" if is_postgresql else "EXPLAIN QUERY PLAN"

    def note(connection: Any, cursor: Any, statement: str, values: Any, *rest: Any) -> None:
        if statement.startswith(("SELECT", "UPDATE", "DELETE")):
            with closing(connection.connection.cursor()) as other:
                other.execute(f"{explain} {statement}", values)
                plans.extend(str(row[-1]) for row in other.fetchall())

    event.listen(database.engine, "before_cursor_execute", note)
    yield plans
    event.remove(database.engine, "before_cursor_execute", note)


def reads_every_job(line: str) -> bool:
    return "Seq Scan on jobs" in line or ("SCAN jobs" in line and "INDEX" not in line)


def test_no_step_of_a_dispatcher_s_round_and_no_claim_reads_every_job(
    database: Database, waiting: list[str]
) -> None:
    claim = {"claim": lambda session: leases.claim(session, waiting[120], 30, most_running=2)}
    for name, step in (DISPATCHERS_ROUND | claim).items():
        with explained(database) as plans, database.transaction() as session:
            step(session)
        assert plans
        assert [line for line in plans if reads_every_job(line)] == [], name

"""Transactions that lock several jobs do so in one order, so that none waits for the other.

Whatever the operation, while it waits for the job that comes first it holds no other: then the
locks of two transactions cannot form a circle. PostgreSQL alone locks rows.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session

from service.db.blobs import BlobRecord
from service.db.clock import now
from service.db.database import Database
from service.http.problems import ProblemCode, ProblemError, problem_document
from service.jobs import job_parts, leases, lifecycle, reaping
from service.jobs.records import JobRecord
from service.jobs.specs.experiment import ExperimentPartSpec, ExperimentSpec
from service.results import repository as results
from service.results.experiment_result import ExperimentPartResult
from service.results.outcome import Artefact, Outcome
from tests.service.jobs.messages import send
from tests.waiting import PATIENCE_SECONDS, wait_for

pytestmark = [
    pytest.mark.integration,
    pytest.mark.parametrize("database_url", ["postgresql"], indirect=True),
]

AddJob = Callable[..., str]
Write = Callable[[Session], object]

CHOICES = {"experiment": {"name": "mixture-em"}, "scale": "quick", "seed": 1, "tag": None}
EXPERIMENT = ExperimentSpec.model_validate({"kind": "experiment", **CHOICES})
PARTS = [
    ExperimentPartSpec.model_validate(
        {"kind": "experiment-part", "part": i, "label": f"part {i}", **CHOICES}
    )
    for i in range(3)
]
GONE = problem_document(ProblemCode.INTERNAL, "gone")
VERSIONS = {"vnce": "1", "python": "3", "numpy": "2", "scipy": "1", "torch": "2"}
OUTCOME = Outcome(
    document=ExperimentPartResult.model_validate(
        {
            "kind": "experiment-part",
            "label": "part",
            "n_rows": 0,
            "seconds": 0.0,
            "worker": "host:1",
            "versions": VERSIONS,
        }
    ),
    edges=[],
    artefacts=[Artefact("rows.json", "application/json", b"[]")],
)


@pytest.fixture
def parent_id(add_job: AddJob) -> str:
    return add_job(kind="experiment", spec=EXPERIMENT.model_dump(mode="json"))


@pytest.fixture
def tokens(database: Database, parent_id: str) -> dict[str, str]:
    """Return the lease tokens of the three parts that the experiment was split into, by id."""
    with database.transaction() as session:
        claim = leases.claim(session, parent_id, 60)
        assert claim is not None
        assert leases.split(session, parent_id, claim.token, PARTS)
        parts = job_parts.parts_of(session, parent_id)
        claims = [leases.claim(session, part.id, 60) for part in parts]
    return {claim.job_id: claim.token for claim in claims if claim is not None}


class Waiting:
    """A transaction in a thread of its own, which waits for another's lock."""

    def __init__(self, database: Database, write: Write) -> None:
        self._has_begun = threading.Event()
        thread = ThreadPoolExecutor(1)
        self._written = thread.submit(self._run, database, write)
        thread.shutdown(wait=False)
        assert self._has_begun.wait(PATIENCE_SECONDS)
        wait_for(lambda: self._waits(database), "the lock")

    def _run(self, database: Database, write: Write) -> None:
        with database.transaction() as session:
            self._process = session.scalar(select(func.pg_backend_pid()))
            self._has_begun.set()
            write(session)

    def _waits(self, database: Database) -> bool:
        query = text("SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = :pid")
        with database.snapshot() as session:
            return bool(session.scalar(query, {"pid": self._process}))

    def finish(self) -> None:
        """Wait for its end, now that nothing is in its way; raise what it raised."""
        self._written.result(PATIENCE_SECONDS)


@contextmanager
def held(database: Database, job_id: str) -> Any:
    """Hold a job as a transaction does that has changed it."""
    with database.transaction() as session:
        session.execute(update(JobRecord).where(JobRecord.id == job_id).values(tag="held"))
        yield


def are_free(database: Database, job_ids: list[str]) -> bool:
    """Return whether none of the jobs is locked; a lock there is an error at once."""
    query = select(JobRecord.id).where(JobRecord.id.in_(job_ids))
    with database.transaction() as session:
        found = session.scalars(query.with_for_update(skip_locked=True, key_share=True)).all()
    return sorted(found) == sorted(job_ids)


def expire(session: Session) -> None:
    session.execute(
        update(JobRecord)
        .where(JobRecord.lease_token.is_not(None))
        .values(lease_expires_at=now() - 1)
    )


OPERATIONS: dict[str, Callable[[Session, str, str], object]] = {
    "succeed": leases.succeed,
    "fail": lambda session, job_id, token: leases.fail(session, job_id, token, GONE),
    "cancel": leases.cancel,
    "requeue": partial(leases.requeue, attempt_counts=False),
    "request its cancellation": lambda session, job_id, _: lifecycle.request_cancellation(
        session, job_id
    ),
}


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_whoever_ends_a_part_holds_no_part_while_it_waits_for_the_parent(
    database: Database, parent_id: str, tokens: dict[str, str], name: str
) -> None:
    part, token = next(iter(tokens.items()))
    with held(database, parent_id):
        waiting = Waiting(database, lambda session: OPERATIONS[name](session, part, token))
        assert are_free(database, list(tokens))
    waiting.finish()


def test_whoever_locks_many_jobs_waits_for_them_by_their_ids(
    database: Database, parent_id: str, tokens: dict[str, str]
) -> None:
    first, *others = sorted(tokens)
    writes: list[Write] = [
        lambda session: lifecycle.request_cancellation(session, parent_id),
        lambda session: lifecycle.remove(session, parent_id),
    ]
    for write in writes:
        with held(database, first):
            waiting = Waiting(database, write)
            assert are_free(database, others)
        waiting.finish()


def test_a_reaper_waits_for_no_job_that_is_held_nor_takes_the_parts_of_one(
    database: Database, parent_id: str, tokens: dict[str, str]
) -> None:
    def reap() -> list[str]:
        with database.transaction() as session:
            return sorted(reaping.requeue_expired(session).requeued)

    def wake() -> list[str]:
        # Messages that wait to be sent keep the jobs from being woken.
        send(database)
        with database.transaction() as session:
            return sorted(reaping.resend_stale(session, -1, num_in_queue=0))

    first, *others = sorted(tokens)
    with database.transaction() as session:
        expire(session)
    with held(database, parent_id):
        assert reap() == []
    with held(database, first):
        assert reap() == others
    assert reap() == [first]
    with held(database, first):
        assert wake() == others


def test_a_part_that_stores_its_result_while_its_job_is_cancelled_and_deleted_leaves_nothing(
    database: Database, parent_id: str, tokens: dict[str, str]
) -> None:
    part, token = next(iter(tokens.items()))
    with database.transaction() as storing:
        assert leases.succeed(storing, part, token)
        results.store(storing, part, OUTCOME)
        cancelling = Waiting(
            database, lambda session: lifecycle.request_cancellation(session, parent_id)
        )
        deleting = Waiting(database, lambda session: lifecycle.remove(session, parent_id))
    cancelling.finish()
    try:
        deleting.finish()
    except ProblemError:  # it came before the cancellation: the job had not ended
        with database.transaction() as session:
            lifecycle.remove(session, parent_id)
    with database.snapshot() as session:
        assert session.scalar(select(func.count(JobRecord.id))) == 0
        assert session.scalar(select(func.count(BlobRecord.id))) == 0

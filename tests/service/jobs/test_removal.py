"""A deleted job of many parts is gone at once, and its rows a little later."""

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import func, insert, select

from service.db.blobs import BlobRecord
from service.db.database import Database, Record
from service.db.identifiers import new_id
from service.http.problems import ProblemError
from service.jobs import leases, lifecycle, removal, repository
from service.jobs.records import IdempotencyRecord, JobRecord, JobState
from service.jobs.result_records import ArtefactRecord, ResultRecord
from service.results import repository as results
from service.results.experiment_result import ExperimentPartResult
from service.results.outcome import Artefact, Outcome

AddJob = Callable[..., str]
NUM_PARTS = removal.MOST_AT_ONCE + 1
EVERY_TABLE = (JobRecord, ResultRecord, ArtefactRecord, BlobRecord, IdempotencyRecord)


@pytest.fixture
def everyone(database: Database) -> Iterator[Database]:
    """Yield the handle on the rows of all tenants."""
    opened = Database(database.engine.url.render_as_string(hide_password=False))
    yield opened
    opened.dispose()


@pytest.fixture
def parent_id(database: Database, add_job: AddJob) -> str:
    """Return a job with many parts, all of which have ended and left something."""
    parent = add_job(state=JobState.CANCELLED, is_split=True)
    parts = [new_id("job") for _ in range(NUM_PARTS)]
    with database.transaction() as session:
        spec = session.get_one(JobRecord, parent).spec
        values = {"kind": "experiment-part", "state": "succeeded", "spec": spec, "max_attempts": 3}
        rows = [{"id": part, "parent_id": parent, "tenant": "default", **values} for part in parts]
        session.execute(insert(JobRecord), rows)
        session.add(IdempotencyRecord(key="k", job_id=parent, body_sha256=""))
        for part in parts[:3]:
            document = ExperimentPartResult.model_construct()
            artefact = Artefact("rows.json", "application/json", b"[]")
            outcome = Outcome(document=document, edges=[], artefacts=[artefact])
            results.store(session, part, outcome)
    return parent


def delete(database: Database, job_id: str) -> None:
    with database.transaction() as session:
        lifecycle.remove(session, job_id)


def remove_some(everyone: Database) -> int:
    with everyone.transaction() as session:
        return removal.remove_hidden(session)


def count(database: Database, record: type[Record]) -> int | None:
    with database.snapshot() as session:
        return session.scalar(select(func.count()).select_from(record))


def test_nothing_of_it_is_to_be_seen_from_the_first_moment(
    database: Database, everyone: Database, parent_id: str
) -> None:
    delete(database, parent_id)
    for _ in range(3):
        assert count(database, JobRecord) == 0
        assert count(database, IdempotencyRecord) == 0
        with database.snapshot() as session, pytest.raises(ProblemError, match="No job has"):
            lifecycle.existing(session, parent_id)
        remove_some(everyone)


def test_its_rows_are_removed_bit_by_bit_and_none_is_left(
    database: Database, everyone: Database, parent_id: str
) -> None:
    delete(database, parent_id)
    assert count(everyone, JobRecord) == NUM_PARTS + 1
    assert [remove_some(everyone) for _ in range(3)] == [removal.MOST_AT_ONCE, 2, 0]
    assert [count(everyone, record) for record in EVERY_TABLE] == [0] * len(EVERY_TABLE)


def test_jobs_of_others_stay(
    database: Database, everyone: Database, parent_id: str, add_job: AddJob
) -> None:
    mine, another_s = add_job(), add_job(tenant="other")
    delete(database, parent_id)
    while remove_some(everyone):
        pass
    with everyone.snapshot() as session:
        assert set(session.scalars(select(JobRecord.id))) == {mine, another_s}


def test_a_worker_that_is_still_at_a_part_hears_to_stop_and_leaves_nothing(
    database: Database, everyone: Database, parent_id: str, add_job: AddJob
) -> None:
    part = add_job(parent_id=parent_id)
    with everyone.transaction() as session:
        claim = leases.claim(session, part, 60)
        assert claim is not None
    with database.transaction() as session:
        assert repository.request_cancellation(session, part)
    delete(database, parent_id)
    with everyone.transaction() as session:
        assert leases.heartbeat(session, part, claim.token, 60, None).cancel_requested
    with database.of(claim.tenant).transaction() as session:
        assert not leases.succeed(session, part, claim.token)
    while remove_some(everyone):
        pass
    assert count(everyone, JobRecord) == 0
    with everyone.transaction() as session:
        assert not leases.heartbeat(session, part, claim.token, 60, None).owned


def test_a_job_of_few_parts_is_removed_at_once(
    database: Database, everyone: Database, add_job: AddJob
) -> None:
    parent = add_job(state=JobState.SUCCEEDED, is_split=True)
    add_job(state=JobState.SUCCEEDED, parent_id=parent)
    delete(database, parent)
    assert count(everyone, JobRecord) == 0

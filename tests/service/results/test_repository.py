"""A result is stored whole, with the end of its job, or not at all."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pydantic import ValidationError
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from service.db.database import Database
from service.jobs import leases
from service.jobs import result_removal as removal
from service.jobs.records import JobRecord, JobState
from service.jobs.result_records import ArtefactRecord, EdgeRecord, ResultRecord
from service.results import repository
from service.results.outcome import Outcome
from service.results.repository import EdgeFilter
from service.results.schemas import EstimationResult


def finish(database: Database, job_id: str, token: str, outcome: Outcome) -> None:
    with database.transaction() as session:
        assert leases.succeed(session, job_id, token)
        repository.store(session, job_id, outcome)


def count(database: Database, record: type) -> int:
    with database.snapshot() as session:
        return session.execute(select(func.count()).select_from(record)).scalar_one()


def test_stored_result_is_read_back(database: Database, job_id: str, outcome: Outcome) -> None:
    with database.snapshot() as session:
        result = session.get_one(ResultRecord, job_id)
        edges = repository.strongest_edges(session, job_id, EdgeFilter(0.0, None), 100, 0)
    assert EstimationResult.model_validate(result.document) == outcome.document
    assert [edge.scaled_interaction for edge in edges] == [
        edge.scaled_interaction for edge in outcome.edges
    ]
    assert count(database, ArtefactRecord) == len(outcome.artefacts)


def test_edges_filter_on_the_size_of_negative_weights(database: Database, job_id: str) -> None:
    with database.snapshot() as session:
        strong = repository.strongest_edges(session, job_id, EdgeFilter(0.4, None), 100, 0)
        weak = repository.strongest_edges(session, job_id, EdgeFilter(0.01, selected=False), 9, 3)
    assert [edge.rank for edge in strong] == [1, 2]
    assert [edge.rank for edge in weak] == [4, 5]


def test_nothing_is_stored_if_the_transaction_fails(
    database: Database, add_job: Callable[..., str], outcome: Outcome
) -> None:
    job = add_job()
    with database.transaction() as session:
        taken = leases.claim(session, job, 60)
    assert taken is not None
    # The last artefact has the name of the first, which the table refuses.
    broken = replace(outcome, artefacts=[*outcome.artefacts, outcome.artefacts[0]])
    with pytest.raises(IntegrityError):
        finish(database, job, taken.token, broken)
    with database.snapshot() as session:
        assert session.get_one(JobRecord, job).state == JobState.RUNNING
    assert count(database, ResultRecord) == count(database, EdgeRecord) == 0


def test_removal_leaves_other_results_alone(
    database: Database, job_id: str, scored_job_id: str
) -> None:
    with database.transaction() as session:
        removal.remove(session, job_id)
    with database.snapshot() as session:
        assert session.get(ResultRecord, job_id) is None
        assert session.get(ResultRecord, scored_job_id) is not None
        kept = session.scalars(select(EdgeRecord.job_id).distinct()).all()
    assert kept == [scored_job_id]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_result_with_a_number_that_is_not_finite_cannot_be_made(
    outcome: Outcome, number: float
) -> None:
    document = outcome.document.model_dump() | {"log_partition": number}
    with pytest.raises(ValidationError):
        EstimationResult.model_validate(document)

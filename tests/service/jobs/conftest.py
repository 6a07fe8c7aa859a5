"""Jobs in a database of either kind."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from service.db.clock import now
from service.db.database import Database
from service.db.identifiers import new_id
from service.jobs.records import JobRecord
from service.jobs.specs.estimation import EstimationSpec

AddJob = Callable[..., str]
ReadJob = Callable[[str], JobRecord]


@pytest.fixture
def spec() -> dict[str, Any]:
    """Return the stored form of a resolved request."""
    spec = EstimationSpec(dataset_id="ds_1", variables=["a", "b"], seed=7)
    return spec.model_dump(mode="json")


@pytest.fixture
def add_job(database: Database, spec: dict[str, Any]) -> AddJob:
    """Return a function that stores a queued job, to be sent, and returns the job's id."""
    numbers = count()

    def add(**columns: Any) -> str:
        values = {"id": new_id("job"), "kind": "estimation", "spec": spec, "max_attempts": 3}
        # SQLite's clock counts milliseconds, in which several are made.
        woken_at = now() + 1e-6 * next(numbers)
        job = JobRecord(**{**values, "woken_at": woken_at, **columns})
        with database.transaction() as session:
            session.add(job)
        return job.id

    return add


@pytest.fixture
def read_job(database: Database) -> ReadJob:
    """Return a function that reads a job's row."""

    def read(job_id: str) -> JobRecord:
        with database.snapshot() as session:
            return session.get_one(JobRecord, job_id)

    return read

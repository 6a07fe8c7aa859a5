"""A database with one job, for tests of what happens to jobs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service import schema
from service.database import Database
from service.identifiers import new_id
from service.jobs import outbox
from service.jobs.records import JobRecord
from service.jobs.specs import EstimationJobCreate


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    url = f"sqlite:///{tmp_path / 'vnce.db'}"
    schema.upgrade(url)
    database = Database(url)
    yield database
    database.dispose()


@pytest.fixture
def add_job(database: Database) -> Callable[..., str]:
    """Return a function that stores a queued job and its message, and returns the job's id."""

    def add(dataset_id: str | None = None, variables: tuple[str, ...] = ("a", "b")) -> str:
        create = EstimationJobCreate(kind="estimation", dataset_id=dataset_id or "none")
        spec = create.model_dump(mode="json") | {"variables": list(variables), "seed": 1}
        job = JobRecord(
            id=new_id("job"),
            kind="estimation",
            spec=spec,
            dataset_id=dataset_id,
            ground_truth=None,
            tag=None,
            max_attempts=3,
        )
        with database.transaction() as session:
            session.add(job)
            session.flush()
            outbox.wake(session, [job.id])
        return job.id

    return add


@pytest.fixture
def read_job(database: Database) -> Callable[[str], JobRecord]:
    """Return a function that reads a job's row."""

    def read(job_id: str) -> JobRecord:
        with database.snapshot() as session:
            job = session.get(JobRecord, job_id)
        assert job is not None
        return job

    return read

"""Jobs that wait."""

from collections.abc import Callable

import pytest
from sqlalchemy import update

from service.db.clock import now
from service.db.database import Database
from service.db.identifiers import new_id
from service.jobs.records import JobRecord
from service.jobs.specs.estimation import EstimationSpec


@pytest.fixture
def add_waiting_job(database: Database) -> Callable[..., str]:
    """Return a function that stores a queued job, submitted `waited` seconds ago."""

    def add(waited: float = 0.0) -> str:
        request = EstimationSpec(dataset_id="none", variables=["a", "b"], seed=1)
        spec = request.model_dump(mode="json")
        job = JobRecord(id=new_id("job"), kind="estimation", spec=spec, max_attempts=3)
        with database.transaction() as session:
            session.add(job)
            session.flush()
            session.execute(
                update(JobRecord).where(JobRecord.id == job.id).values(created_at=now() - waited)
            )
        return job.id

    return add

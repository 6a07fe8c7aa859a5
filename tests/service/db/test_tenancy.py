"""A bound session reaches its tenant's rows and no others, however the query is written."""

import pytest
from sqlalchemy import delete, exists, func, select, update
from sqlalchemy.orm import aliased

from service.db.database import Database
from service.jobs.records import JobRecord


def job(job_id: str, **columns: object) -> JobRecord:
    return JobRecord(id=job_id, kind="estimation", spec={}, max_attempts=3, **columns)


@pytest.fixture
def tenants(database: Database) -> tuple[Database, Database]:
    """Return the handles of two tenants, each with a job."""
    ours, theirs = database.of("ours"), database.of("theirs")
    for handle, job_id in ((ours, "job_ours"), (theirs, "job_theirs")):
        with handle.transaction() as session:
            session.add(job(job_id))
    return ours, theirs


def test_rows_are_written_for_the_sessions_tenant(tenants: tuple[Database, Database]) -> None:
    with tenants[0].snapshot() as session:
        assert session.get_one(JobRecord, "job_ours").tenant == "ours"


def test_a_row_of_nobody_cannot_be_written(database_url: str) -> None:
    database = Database(database_url)
    with pytest.raises(LookupError, match="bound to no tenant"), database.transaction() as session:
        session.add(job("job_nobodys"))
    database.dispose()


def test_no_kind_of_select_finds_anothers_row(tenants: tuple[Database, Database]) -> None:
    other = aliased(JobRecord)
    with tenants[0].snapshot() as session:
        assert session.get(JobRecord, "job_theirs") is None
        assert session.scalars(select(JobRecord.id)).all() == ["job_ours"]
        assert session.scalars(select(func.count()).select_from(JobRecord)).one() == 1
        assert session.scalars(select(other.id)).all() == ["job_ours"]
        is_there = exists().where(other.id == "job_theirs")
        assert session.scalars(select(JobRecord.id).where(is_there)).all() == []
        among = select(JobRecord.id).where(JobRecord.id.in_(select(other.id)))
        assert session.scalars(among).all() == ["job_ours"]


def test_no_update_or_delete_reaches_anothers_row(tenants: tuple[Database, Database]) -> None:
    ours, theirs = tenants
    unsynchronised = {"synchronize_session": False}
    with ours.transaction() as session:
        session.execute(update(JobRecord).values(tag="x").execution_options(**unsynchronised))
        session.execute(
            delete(JobRecord)
            .where(JobRecord.id == "job_theirs")
            .execution_options(**unsynchronised)
        )
    with theirs.snapshot() as session:
        assert session.get_one(JobRecord, "job_theirs").tag is None


def test_an_unbound_session_sees_everything(
    tenants: tuple[Database, Database], database_url: str
) -> None:
    database = Database(database_url)
    with database.snapshot() as session:
        found = set(session.scalars(select(JobRecord.id)))
    database.dispose()
    assert found == {"job_ours", "job_theirs"}

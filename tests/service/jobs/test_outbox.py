"""Wake-up messages are kept until they are sent, and sent by one dispatcher."""

from collections.abc import Callable

import pytest
from sqlalchemy import func, select, update

from service.db.clock import now
from service.db.database import Database
from service.jobs import outbox
from service.jobs.records import OutboxRecord

AddJob = Callable[..., str]


def pending_jobs(database: Database, limit: int = 10) -> list[str]:
    with database.transaction() as session:
        return [message.job_id for message in outbox.pending(session, limit)]


def test_messages_come_oldest_first_and_no_more_than_asked(
    database: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(3)]
    assert pending_jobs(database, limit=2) == jobs[:2]


def test_message_stays_until_it_is_said_to_be_sent(database: Database, add_job: AddJob) -> None:
    job_id = add_job()
    assert pending_jobs(database) == [job_id]
    with database.transaction() as session:
        outbox.sent(session, [message.id for message in outbox.pending(session, 10)])
    assert pending_jobs(database) == []


def test_id_of_a_sent_message_is_not_given_again(database: Database, add_job: AddJob) -> None:
    first = add_job()
    with database.transaction() as session:
        [old] = outbox.pending(session, 10)
        outbox.sent(session, [old.id])
        outbox.wake(session, [first])
        [new] = outbox.pending(session, 10)
    assert new.id > old.id


def test_reserved_messages_are_passed_over_until_they_are_given_back(
    database: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(3)]
    with database.transaction() as session:
        reserved = outbox.reserve(session, 2)
    assert [message.job_id for message in reserved] == jobs[:2]
    assert pending_jobs(database) == jobs[2:]
    with database.transaction() as session:
        outbox.sent(session, [reserved[0].id])
        outbox.give_back(session, reserved[1:])
    assert pending_jobs(database) == jobs[1:]


def test_messages_of_a_dispatcher_that_was_lost_are_left_to_others_after_a_while(
    database: Database, add_job: AddJob
) -> None:
    job_id = add_job()
    with database.transaction() as session:
        outbox.reserve(session, 1)
        session.execute(update(OutboxRecord).values(reserved_until=now() + 60))
    assert pending_jobs(database) == []
    with database.transaction() as session:
        session.execute(update(OutboxRecord).values(reserved_until=now() - 1))
    assert pending_jobs(database) == [job_id]


@pytest.mark.slow
def test_more_jobs_than_a_statement_takes_values_are_woken_at_once(
    database: Database, add_job: AddJob
) -> None:
    # PostgreSQL takes 65,535 values, SQLite 32,766.
    job_ids = [add_job()] * 65_536
    with database.transaction() as session:
        outbox.wake(session, job_ids)
        assert session.scalar(select(func.count(OutboxRecord.id))) == 1 + len(job_ids)


@pytest.mark.integration
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_dispatchers_at_the_same_time_get_different_messages(
    database: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(4)]
    with database.transaction() as one, database.transaction() as other:
        first = [message.job_id for message in outbox.pending(one, 2)]
        second = [message.job_id for message in outbox.pending(other, 4)]
    assert (first, second) == (jobs[:2], jobs[2:])

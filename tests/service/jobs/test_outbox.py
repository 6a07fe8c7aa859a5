"""Wake-up messages are kept until they are sent, and sent by one dispatcher."""

from collections.abc import Callable

import pytest
from sqlalchemy import select, update

from service.db.database import Database
from service.jobs import leases, outbox, repository
from service.jobs.leases import Claim
from service.jobs.outbox import Batch
from service.jobs.records import JobRecord
from tests.service.jobs.messages import send, to_be_sent

AddJob = Callable[..., str]
ReadJob = Callable[[str], JobRecord]


def reserve(database: Database, limit: int = 10) -> Batch:
    with database.transaction() as session:
        return outbox.reserve(session, limit)


def settle(database: Database, batch: Batch, num_sent: int) -> None:
    with database.transaction() as session:
        outbox.settle(session, batch, num_sent)


def claim(database: Database, job_id: str) -> Claim:
    with database.transaction() as session:
        taken = leases.claim(session, job_id, 30)
    assert taken is not None
    return taken


def test_messages_come_oldest_first_and_no_more_than_asked(
    database: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(3)]
    assert reserve(database, limit=2).job_ids == jobs[:2]


def test_a_message_is_to_be_sent_until_it_is_said_to_be_sent(
    database: Database, add_job: AddJob, read_job: ReadJob
) -> None:
    job_id = add_job()
    assert to_be_sent(database) == [job_id]
    assert send(database) == [job_id]
    assert to_be_sent(database) == []
    assert read_job(job_id).sent_at is not None


def test_reserved_messages_are_passed_over_until_they_are_given_back(
    database: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(3)]
    reserved = reserve(database, 2)
    assert reserved.job_ids == jobs[:2]
    assert reserve(database).job_ids == jobs[2:]
    settle(database, reserved, num_sent=1)
    assert reserve(database).job_ids == jobs[1:2]


def test_a_message_that_the_broker_does_not_take_keeps_its_turn_and_its_age(
    database: Database, add_job: AddJob, read_job: ReadJob
) -> None:
    jobs = [add_job() for _ in range(2)]
    woken_at = read_job(jobs[0]).woken_at
    settle(database, reserve(database, 1), num_sent=0)
    assert read_job(jobs[0]).woken_at == woken_at
    assert reserve(database).job_ids == jobs


def test_messages_of_a_dispatcher_that_was_lost_are_left_to_others_after_a_while(
    database: Database, add_job: AddJob
) -> None:
    job_id = add_job()
    reserve(database)
    assert reserve(database).job_ids == []
    with database.transaction() as session:
        reserved = JobRecord.send_after - outbox.RESERVATION_SECONDS
        session.execute(update(JobRecord).values(send_after=reserved))
    assert reserve(database).job_ids == [job_id]


def test_a_claim_and_a_cancellation_leave_nothing_to_send(
    database: Database, add_job: AddJob
) -> None:
    claimed, cancelled = add_job(), add_job()
    claim(database, claimed)
    with database.transaction() as session:
        assert repository.request_cancellation(session, cancelled)
    assert to_be_sent(database) == []


def test_a_job_that_was_begun_and_handed_back_while_its_message_travelled_is_sent_again(
    database: Database, add_job: AddJob
) -> None:
    job_id = add_job()
    batch = reserve(database)
    taken = claim(database, job_id)
    with database.transaction() as session:
        assert leases.requeue(session, job_id, taken.token, attempt_counts=False)
    settle(database, batch, num_sent=1)
    assert send(database) == [job_id]


def test_a_job_that_was_begun_while_its_message_travelled_has_none_to_be_sent(
    database: Database, add_job: AddJob
) -> None:
    job_id = add_job()
    batch = reserve(database)
    claim(database, job_id)
    settle(database, batch, num_sent=0)
    assert to_be_sent(database) == []


@pytest.mark.integration
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_dispatchers_at_the_same_time_get_different_messages(
    database: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(4)]
    with database.transaction() as one, database.transaction() as other:
        first = outbox.reserve(one, 2)
        second = outbox.reserve(other, 4)
    assert (first.job_ids, second.job_ids) == (jobs[:2], jobs[2:])


@pytest.mark.integration
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_dispatcher_waits_for_no_job_that_somebody_holds(
    database: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(3)]

    def hold(job_id: str) -> None:
        held.execute(select(JobRecord.id).where(JobRecord.id == job_id).with_for_update())

    with database.transaction() as held:
        hold(jobs[0])
        batch = reserve(database)
        assert batch.job_ids == jobs[1:]
        hold(jobs[1])
        settle(database, batch, num_sent=2)
    # What was held at that moment is still reserved, and will be sent again.
    assert to_be_sent(database) == jobs[:2]
    assert reserve(database).job_ids == jobs[:1]

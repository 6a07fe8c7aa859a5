"""No tenant's jobs are held by more workers than they may be, and none is forgotten for it."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from sqlalchemy import update

from service.db.clock import now
from service.db.database import Database
from service.jobs import leases, outbox, queue, reaping, repository
from service.jobs.leases import Claim
from service.jobs.records import JobRecord, JobState
from tests.service.jobs import messages
from tests.waiting import PATIENCE_SECONDS

AddJob = Callable[..., str]
LEASE = 30.0


def claim(database: Database, job_id: str, most: int | None = 2) -> Claim | None:
    with database.transaction() as session:
        return leases.claim(session, job_id, LEASE, most)


send = partial(messages.send, most=2)
to_be_sent = messages.to_be_sent


def succeed(database: Database, taken: Claim | None) -> None:
    assert taken is not None
    with database.transaction() as session:
        assert leases.succeed(session, taken.job_id, taken.token)


def delay_is_over(database: Database) -> None:
    """Let the time pass for which messages of jobs that were refused are delayed."""
    with database.transaction() as session:
        earlier = JobRecord.send_after - outbox.REFUSED_SECONDS
        session.execute(update(JobRecord).values(send_after=earlier))


@pytest.fixture
def everyone(database: Database) -> Iterator[Database]:
    """Yield the handle of dispatchers and claims, on the rows of all tenants."""
    opened = Database(database.engine.url.render_as_string(hide_password=False))
    yield opened
    opened.dispose()


def test_no_more_messages_are_sent_than_there_are_slots(
    everyone: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(5)]
    assert send(everyone) == jobs[:2]
    assert send(everyone) == []
    first = claim(everyone, jobs[0])
    assert send(everyone) == []
    succeed(everyone, first)
    assert send(everyone) == [jobs[2]]


def test_a_job_whose_worker_was_lost_takes_its_own_slot_again(
    everyone: Database, add_job: AddJob
) -> None:
    job_id = add_job()
    with everyone.transaction() as session:
        assert leases.claim(session, job_id, lease_seconds=-1, most_running=1)
    taken = claim(everyone, job_id, most=1)
    assert taken is not None
    assert taken.attempt == 2


def test_jobs_of_others_pass_by_those_that_wait_for_a_slot(
    everyone: Database, add_job: AddJob
) -> None:
    mine = [add_job() for _ in range(5)]
    other = add_job(tenant="other")
    # The first batch is full of mine, of which two have a slot.
    assert send(everyone, limit=5) == mine[:2]
    assert send(everyone, limit=5) == [other]


def test_without_a_limit_all_are_sent(everyone: Database, add_job: AddJob) -> None:
    jobs = [add_job() for _ in range(5)]
    assert send(everyone, most=None) == jobs


def test_a_job_without_a_slot_is_refused_and_its_message_comes_back(
    everyone: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(3)]
    assert send(everyone, most=None) == jobs
    held = [claim(everyone, job_id) for job_id in jobs[:2]]
    assert claim(everyone, jobs[2]) is None
    assert claim(everyone, jobs[2]) is None
    assert to_be_sent(everyone) == [jobs[2]]
    delay_is_over(everyone)
    assert send(everyone) == []
    succeed(everyone, held[0])
    assert send(everyone) == [jobs[2]]
    assert claim(everyone, jobs[2]) is not None


def test_a_message_that_is_to_be_sent_anyhow_is_not_delayed_by_a_refusal(
    everyone: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(3)]
    held = [claim(everyone, job_id) for job_id in jobs[:2]]
    assert claim(everyone, jobs[2]) is None
    succeed(everyone, held[0])
    assert send(everyone) == [jobs[2]]


def test_a_dispatcher_without_the_limit_does_not_send_refused_jobs_round_and_round(
    everyone: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(4)]
    assert send(everyone, most=None) == jobs
    assert [claim(everyone, job_id) is not None for job_id in jobs] == [True, True, False, False]
    assert send(everyone, most=None) == []
    # A job that comes later does not wait behind them.
    other = add_job(tenant="other")
    assert send(everyone, most=None) == [other]
    with everyone.snapshot() as session:
        assert outbox.num_delayed(session) == 2
    delay_is_over(everyone)
    with everyone.snapshot() as session:
        assert outbox.num_delayed(session) == 0
    assert send(everyone, most=None) == jobs[2:]


def test_a_clock_that_is_set_back_delays_no_message(everyone: Database, add_job: AddJob) -> None:
    job_id = add_job()
    with everyone.transaction() as session:
        session.execute(update(JobRecord).values(send_after=now() + 3600))
    assert send(everyone) == [job_id]


def test_a_job_that_was_handed_over_goes_before_those_that_no_worker_had(
    everyone: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(5)]
    assert send(everyone) == jobs[:2]
    held = [claim(everyone, job_id) for job_id in jobs[:2]]
    assert held[1] is not None
    with everyone.transaction() as session:
        assert leases.requeue(session, jobs[1], held[1].token, attempt_counts=False)
    assert send(everyone) == [jobs[1]]
    succeed(everyone, held[0])
    assert send(everyone) == [jobs[2]]


def test_two_dispatchers_at_once_send_no_more_messages_than_there_are_slots(
    everyone: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(4)]
    with ThreadPoolExecutor(1) as pool:
        with everyone.transaction() as session:
            first = outbox.reserve(session, 100, 2)
            second = pool.submit(send, everyone)
            # It waits to count until the first has told what it takes.
            with pytest.raises(TimeoutError):
                second.result(timeout=0.2)
        assert second.result(timeout=PATIENCE_SECONDS) == []
    assert first.job_ids == jobs[:2]


def test_a_message_is_sent_again_also_where_the_one_at_hand_is_yet_to_be_settled(
    everyone: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(3)]
    with everyone.transaction() as session:
        batch = outbox.reserve(session, 100)
    # The broker has them all, and workers claim before the dispatcher's next statement.
    held = [claim(everyone, job_id) for job_id in jobs]
    assert held[2] is None
    with everyone.transaction() as session:
        outbox.settle(session, batch, len(batch.job_ids))
    assert to_be_sent(everyone) == [jobs[2]]
    delay_is_over(everyone)
    succeed(everyone, held[0])
    assert send(everyone) == [jobs[2]]


def test_a_tenant_that_uses_its_slots_takes_none_from_another(
    everyone: Database, add_job: AddJob
) -> None:
    for job_id in [add_job(), add_job()]:
        assert claim(everyone, job_id) is not None
    assert claim(everyone, add_job()) is None
    assert claim(everyone, add_job(tenant="other")) is not None


def test_a_job_that_has_ended_or_is_cancelled_gets_no_message_back(
    everyone: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(3)]
    send(everyone, most=None)
    held = [claim(everyone, job_id) for job_id in jobs[:2]]
    assert claim(everyone, jobs[0]) is None
    with everyone.transaction() as session:
        repository.request_cancellation(session, jobs[2])
    assert claim(everyone, jobs[2]) is None
    succeed(everyone, held[0])
    assert claim(everyone, jobs[0]) is None
    assert to_be_sent(everyone) == []


def test_cancelled_jobs_have_no_message_and_take_no_slot(
    everyone: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(6)]
    assert send(everyone) == jobs[:2]
    assert [claim(everyone, job_id) is not None for job_id in jobs[:2]] == [True, True]
    with everyone.transaction() as session:
        for job_id in jobs[3:]:
            repository.request_cancellation(session, job_id)
    assert send(everyone) == []
    assert to_be_sent(everyone) == [jobs[2]]


def test_a_job_that_rests_on_its_parts_takes_no_slot_and_its_parts_do(
    everyone: Database, add_job: AddJob
) -> None:
    parent = add_job()
    parts = [add_job(parent_id=parent) for _ in range(3)]
    with everyone.transaction() as session:
        is_parent = JobRecord.id == parent
        resting = update(JobRecord).where(is_parent)
        session.execute(resting.values(state=JobState.RUNNING, is_split=True))
    held = [claim(everyone, part) for part in parts]
    assert [taken is not None for taken in held] == [True, True, False]
    # It is not yet to be put together: its message must not go round and round.
    send(everyone, most=None)
    assert claim(everyone, parent) is None
    assert parent not in to_be_sent(everyone)


def test_what_waits_for_a_slot_is_not_taken_for_lost(everyone: Database, add_job: AddJob) -> None:
    jobs = [add_job() for _ in range(4)]
    assert send(everyone) == jobs[:2]
    with everyone.transaction() as session:
        session.execute(update(JobRecord).values(sent_at=now() - 61))
        assert reaping.resend_stale(session, 60, num_in_queue=2) == []


def test_messages_that_the_broker_has_lost_do_not_keep_their_slots(
    everyone: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(4)]
    assert send(everyone) == jobs[:2]
    with everyone.transaction() as session:
        session.execute(update(JobRecord).values(sent_at=now() - 61))
        assert set(reaping.resend_stale(session, 60, num_in_queue=0)) == set(jobs[:2])
    # Theirs were written anew, after the others', for which it is now the turn.
    assert send(everyone) == jobs[2:]


def test_messages_that_wait_for_a_slot_are_not_told_as_messages_to_be_sent(
    everyone: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(4)]
    with everyone.transaction() as session:
        session.execute(update(JobRecord).values(woken_at=now() - 100))
    for job_id in jobs[:2]:
        claim(everyone, job_id)
    assert send(everyone) == []
    with everyone.snapshot() as session:
        limited, free = (queue.look(session, most) for most in (2, None))
    assert (limited.queued, limited.outbox, limited.oldest_outbox_seconds) == (2, 0, 0.0)
    assert free.outbox == 2
    assert free.oldest_outbox_seconds >= 100


def test_a_slot_that_is_free_until_the_next_round_makes_no_message_look_forgotten(
    everyone: Database, add_job: AddJob
) -> None:
    mine = [add_job() for _ in range(4)]
    add_job(tenant="other")
    with everyone.transaction() as session:
        long_ago = now() - 100
        of_mine = JobRecord.id.in_(mine)
        session.execute(update(JobRecord).where(of_mine).values(woken_at=long_ago))
    send(everyone, limit=2)
    succeed(everyone, claim(everyone, mine[0]))
    with everyone.snapshot() as session:
        seen = queue.look(session, 2)
    assert seen.outbox == 1  # the other's
    assert seen.oldest_outbox_seconds < 100


def test_claims_at_the_same_moment_take_no_more_than_the_slots_there_are(
    everyone: Database, add_job: AddJob
) -> None:
    jobs = [add_job() for _ in range(16)]
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda job_id: claim(everyone, job_id, 3), jobs))
    assert sum(one is not None for one in taken) == 3

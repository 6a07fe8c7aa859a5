"""Several dispatchers, which are several reapers too, do together what one does."""

import json
import signal
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import func, select, update

from service.db.clock import now
from service.db.identifiers import new_id
from service.jobs.records import JobRecord
from service.monitoring.broker import QUEUE_NAME
from service.monitoring.records import ProcessRecord
from tests.faults.stack import Stack
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.faults]

# More than one batch of messages.
NUM_JOBS = 110


@pytest.fixture
def dispatchers(stack: Stack) -> list[Any]:
    """Return the processes of three dispatchers that are at work."""
    more = [stack.start_dispatcher(f"dispatcher-{number}") for number in (2, 3)]
    pids = {process.pid for process in more}

    def have_begun() -> bool:
        with stack.database.snapshot() as session:
            return pids <= set(session.scalars(select(ProcessRecord.pid)))

    wait_for(have_begun, "the dispatchers to begin")
    return [stack.processes["dispatcher"], *more]


@contextmanager
def frozen(processes: list[Any]) -> Iterator[None]:
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)


def submit_many(stack: Stack, body: Any, number: int) -> list[str]:
    with ThreadPoolExecutor(4) as clients:
        return list(clients.map(lambda _: stack.submit(body), range(number)))


def num_in_outbox(stack: Stack) -> int | None:
    with stack.database.snapshot() as session:
        return session.scalar(
            select(func.count(JobRecord.id)).where(JobRecord.send_after.is_not(None))
        )


def num_messages_by_job(broker: Any) -> Counter[str]:
    messages = [json.loads(message) for message in broker.client.lrange(QUEUE_NAME, 0, -1)]
    return Counter(json.loads(b64decode(message["body"]))[0][0] for message in messages)


def test_every_message_is_sent_by_one_dispatcher(
    stack: Stack, broker: Any, dispatchers: list[Any], short_job: Any
) -> None:
    with stack.workers_frozen():
        with frozen(dispatchers):
            job_ids = submit_many(stack, short_job, NUM_JOBS)
        wait_for(lambda: num_in_outbox(stack) == 0, "all messages to be sent")
        sent = num_messages_by_job(broker)
        # A frozen worker may have been handed a message.
        assert sum(sent.values()) >= NUM_JOBS - len(stack.workers)
        assert set(sent.values()) == {1}
    jobs = [stack.wait(job_id) for job_id in job_ids]
    assert {(job["state"], job["attempt"]) for job in jobs} == {("succeeded", 1)}


def test_every_lost_job_is_dealt_with_by_one_reaper(
    stack: Stack, broker: Any, dispatchers: list[Any], short_job: Any
) -> None:
    with stack.workers_frozen():
        with frozen(dispatchers):
            job_ids = submit_many(stack, short_job, 40)
            again, at_their_end = job_ids[:20], job_ids[20:]
            lose(stack, again, attempt=1)
            lose(stack, at_their_end, attempt=3)
        failed = [stack.wait(job_id) for job_id in at_their_end]
        assert {(job["state"], job["error"]["code"]) for job in failed} == {
            ("failed", "worker-lost")
        }
        wait_for(lambda: num_in_outbox(stack) == 0, "all messages to be sent")
        sent = num_messages_by_job(broker)
        assert sum(sent.values()) >= len(again) - len(stack.workers)
        assert set(sent.values()) == {1}
        assert set(sent) <= set(again)
    jobs = [stack.wait(job_id) for job_id in again]
    assert {(job["state"], job["attempt"]) for job in jobs} == {("succeeded", 2)}


def lose(stack: Stack, job_ids: list[str], attempt: int) -> None:
    """Leave jobs as workers do that were killed in an attempt and whose leases have run out."""
    with stack.database.transaction() as session:
        session.execute(
            update(JobRecord)
            .where(JobRecord.id.in_(job_ids))
            .values(
                state="running",
                send_after=None,
                attempt=attempt,
                lease_token=new_id("lease"),
                lease_expires_at=now() - 1,
            )
        )

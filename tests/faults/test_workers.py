"""A worker that is killed, cut off or frozen costs at most its lease."""

import os
import signal
import time
from datetime import datetime
from functools import partial
from typing import Any

import psutil
import pytest
from sqlalchemy import select, text

from service.db.database import UNHEARD_SECONDS
from service.jobs.records import JobRecord
from tests.faults.stack import Stack, wait_until_idle
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.faults]

# What a machine with much else to do may add.
SLACK_SECONDS = 60.0


def began_at(job: dict[str, Any]) -> float:
    """Return when the latest attempt began, in seconds since 1970."""
    return datetime.fromisoformat(job["started_at"]).timestamp()


@pytest.mark.parametrize("whole_tree", [False, True], ids=["process", "tree"])
def test_a_job_whose_worker_is_killed_is_done_again_after_the_lease_with_the_same_numbers(
    stack: Stack, long_fit: Any, undisturbed: Any, whole_tree: bool
) -> None:
    job_id = stack.submit(long_fit)
    stack.wait_until_fitting(job_id)
    child = stack.busy_child()
    if whole_tree:
        stack.parent_of(child).kill()
    else:
        child.kill()
    killed = time.time()
    job = stack.wait(job_id)
    assert (job["state"], job["attempt"]) == ("succeeded", 2)
    assert began_at(job) < killed + stack.lease_seconds + stack.wake_seconds + SLACK_SECONDS
    assert stack.estimates(job_id) == undisturbed


def test_a_job_whose_worker_lost_its_parent_ends_once_and_leaves_no_process(
    stack: Stack, long_fit: Any, undisturbed: Any
) -> None:
    job_id = stack.submit(long_fit)
    stack.wait_until_fitting(job_id)
    child = stack.busy_child()
    os.kill(child.ppid(), signal.SIGKILL)
    job = stack.wait(job_id)
    assert job["state"] == "succeeded"
    assert stack.estimates(job_id) == undisturbed
    wait_for(lambda: not child.is_running(), "the orphan to end")


def test_what_a_frozen_worker_finishes_late_changes_nothing(
    stack: Stack, long_fit: Any, undisturbed: Any
) -> None:
    job_id = stack.submit(long_fit)
    stack.wait_until_fitting(job_id)
    frozen = stack.busy_child()
    frozen.suspend()
    try:
        job = stack.wait(job_id)
        assert (job["state"], job["attempt"]) == ("succeeded", 2)
        assert stack.estimates(job_id) == undisturbed
    finally:
        frozen.resume()

    wait_until_idle(frozen)
    assert stack.client.job(job_id) == job
    assert stack.estimates(job_id) == undisturbed


def test_a_worker_frozen_in_a_transaction_keeps_nobody_waiting(
    stack: Stack, long_fit: Any, undisturbed: Any, short_job: Any
) -> None:
    job_id = stack.submit(long_fit)
    stack.wait_until_fitting(job_id)
    frozen, connection = wait_for(partial(frozen_in_a_transaction, stack, job_id), "a held row")
    try:
        held_since, _ = what_it_does(stack, connection)
        short = stack.wait(stack.submit(short_job), "succeeded")
        # It did not wait for the database to end that transaction.
        assert began_at(short) < held_since + UNHEARD_SECONDS
        job = stack.wait(job_id)
        late = stack.wake_seconds + SLACK_SECONDS
        assert began_at(job) < held_since + max(UNHEARD_SECONDS, stack.lease_seconds) + late
        assert (job["state"], job["attempt"]) == ("succeeded", 2)
        assert stack.estimates(job_id) == undisturbed
    finally:
        frozen.resume()
    wait_until_idle(frozen)
    assert stack.client.job(job_id) == job


def frozen_in_a_transaction(stack: Stack, job_id: str) -> tuple[psutil.Process, int] | None:
    """Freeze the job's worker while its heartbeat holds the job's row, of which it never hears.

    Return its process and its connection, by the server's number; None where the database gave the
    heartbeat up just before.
    """
    with stack.database.transaction() as session:
        row = select(JobRecord.id).where(JobRecord.id == job_id)
        session.execute(row.with_for_update())
        waiting = partial(waiting_worker, stack)
        process, connection = wait_for(waiting, "a heartbeat to wait for the row")
        process.suspend()

    def outcome() -> str | None:
        _, state = what_it_does(stack, connection)
        return None if state == "active" else state

    is_held = False
    try:
        is_held = wait_for(outcome, "the heartbeat to get the row") == "idle in transaction"
    finally:
        if not is_held:
            process.resume()
    return (process, connection) if is_held else None


def waiting_worker(stack: Stack) -> tuple[psutil.Process, int] | None:
    """Return a process of a worker that waits for a job's row, and by which connection."""
    processes = {
        end.laddr.port: child
        for worker in stack.workers
        for child in psutil.Process(worker.pid).children()
        for end in child.net_connections("tcp")
    }
    with stack.database.snapshot() as session:
        waiting = session.execute(
            text(
                "SELECT pid, client_port FROM pg_stat_activity WHERE state = 'active'"
                " AND wait_event_type = 'Lock' AND query LIKE 'UPDATE jobs%'"
            )
        ).all()
    # The dispatcher's may be among them.
    ours = [(processes[port], pid) for pid, port in waiting if port in processes]
    return ours[0] if ours else None


def what_it_does(stack: Stack, connection: int) -> tuple[float, str]:
    """Return since when, in seconds since 1970, a connection is in its state, and that state."""
    with stack.database.snapshot() as session:
        since, state = session.execute(
            text(
                "SELECT extract(epoch FROM state_change)::float8, state FROM pg_stat_activity"
                " WHERE pid = :connection"
            ),
            {"connection": connection},
        ).one()
    return since, state

import json
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import select, update

from service.db import counters
from service.db.clock import now
from service.db.counters import Count, Counter, CounterRecord
from service.db.database import Database
from service.db.identifiers import new_id
from service.db.tenant_names import DEFAULT_TENANT, NOBODY
from service.jobs import checkpoints, leases, removal
from service.jobs.records import JobRecord, JobState
from service.jobs.specs.experiment import ExperimentPartSpec, ExperimentSpec
from service.monitoring import heartbeats
from service.monitoring.broker import QUEUE_NAME
from service.monitoring.heartbeats import ProcessIdentity
from service.monitoring.records import ProcessKind, ProcessRecord
from tests.service.jobs.messages import to_be_sent
from tests.waiting import PATIENCE_SECONDS, wait_for
from worker.dispatcher import BROKER_TROUBLE, Dispatcher
from worker.queue.celery_app import create_celery
from worker.settings import WorkerSettings

pytestmark = pytest.mark.integration

AddJob = Callable[..., str]
ReadJob = Callable[[str], JobRecord]


@pytest.fixture
def dispatcher(
    database: Database, valkey_server: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Dispatcher]:
    monkeypatch.setattr("worker.queue.celery_app.SOCKET_SECONDS", 0.3)
    monkeypatch.setattr("worker.queue.broker.SOCKET_SECONDS", 0.3)
    settings = WorkerSettings(
        broker_url=valkey_server.url, resend_seconds=0.001, outbox_seconds=0.01, reaper_seconds=0.05
    )
    # The handle on the rows of all tenants.
    whole = Database(database.engine.url.render_as_string(hide_password=False))
    with closing(create_celery(settings)) as app:
        yield Dispatcher(whole, app, settings)
    whole.dispose()


def queued_job_ids(valkey_server: Any) -> list[str]:
    """Return what the messages in the queue name, oldest first."""
    with valkey_server.client as client:
        messages = [json.loads(message) for message in client.lrange(QUEUE_NAME, 0, -1)]
    return [json.loads(b64decode(message["body"]))[0][0] for message in reversed(messages)]


def outbox_size(database: Database) -> int:
    return len(to_be_sent(database))


def test_every_message_is_sent_once_and_in_order(
    dispatcher: Dispatcher, database: Database, valkey_server: Any, add_job: AddJob
) -> None:
    job_ids = [add_job() for _ in range(3)]
    dispatcher.send_pending()
    dispatcher.send_pending()
    assert queued_job_ids(valkey_server) == job_ids
    assert outbox_size(database) == 0


def test_a_message_is_small_and_holds_no_data(
    dispatcher: Dispatcher, valkey_server: Any, add_job: AddJob
) -> None:
    add_job(variables=tuple(f"variable {i}" for i in range(1000)))
    dispatcher.send_pending()
    with valkey_server.client as client:
        assert len(client.lindex(QUEUE_NAME, 0)) < 4096


@pytest.mark.faults
def test_messages_outlast_a_broker_that_is_away(
    dispatcher: Dispatcher, database: Database, valkey_server: Any, add_job: AddJob
) -> None:
    valkey_server.kill()
    job_id = add_job()
    with pytest.raises(BROKER_TROUBLE):
        dispatcher.send_pending()
    assert outbox_size(database) == 1
    valkey_server.restart_empty()
    dispatcher.send_pending()
    assert queued_job_ids(valkey_server) == [job_id]


def test_messages_outlast_a_broker_that_is_full(
    dispatcher: Dispatcher, database: Database, valkey_server: Any, add_job: AddJob
) -> None:
    job_id = add_job()
    with valkey_server.client as client:
        client.config_set("maxmemory", 1)
        with pytest.raises(BROKER_TROUBLE):
            dispatcher.send_pending()
        assert outbox_size(database) == 1
        client.config_set("maxmemory", 0)
    dispatcher.send_pending()
    assert queued_job_ids(valkey_server) == [job_id]


@pytest.mark.faults
def test_a_frozen_broker_holds_the_dispatcher_for_a_bounded_time_and_submissions_not_at_all(
    dispatcher: Dispatcher, valkey_server: Any, add_job: AddJob
) -> None:
    add_job()
    dispatcher.send_pending()  # so that a connection is open when the broker freezes
    add_job()
    valkey_server.freeze()
    errors: list[Exception] = []

    def send() -> None:
        try:
            dispatcher.send_pending()
        except BROKER_TROUBLE as error:
            errors.append(error)

    sending = threading.Thread(target=send)
    sending.start()
    add_job()
    assert sending.is_alive()  # a submission did not wait for it
    sending.join(timeout=PATIENCE_SECONDS)
    assert len(errors) == 1
    valkey_server.thaw()


@pytest.mark.faults
def test_jobs_are_woken_again_after_the_broker_lost_its_messages(
    dispatcher: Dispatcher, valkey_server: Any, add_job: AddJob
) -> None:
    job_ids = [add_job() for _ in range(3)]
    dispatcher.send_pending()
    valkey_server.kill()
    valkey_server.restart_empty()
    time.sleep(0.01)
    dispatcher.reap()
    dispatcher.send_pending()
    assert sorted(queued_job_ids(valkey_server)) == sorted(job_ids)


def test_a_job_whose_parts_have_ended_is_woken_again_after_the_broker_lost_its_message(
    dispatcher: Dispatcher, database: Database, valkey_server: Any
) -> None:
    choices = {"experiment": {"name": "mixture-em"}, "scale": "quick", "seed": 1, "tag": None}
    spec = ExperimentSpec.model_validate({"kind": "experiment", **choices})
    part = ExperimentPartSpec.model_validate(
        {"kind": "experiment-part", "part": 0, "label": "one", **choices}
    )
    parent = JobRecord(
        id=new_id("job"), kind="experiment", spec=spec.model_dump(mode="json"), max_attempts=3
    )
    with database.transaction() as session:
        session.add(parent)
        session.flush()
        parent_id = parent.id
        claim = leases.claim(session, parent_id, 60)
        assert claim is not None
        assert leases.split(session, parent_id, claim.token, [part])
        [part_id] = session.scalars(select(JobRecord.id).where(JobRecord.parent_id == parent_id))
        part_claim = leases.claim(session, part_id, 60)
        assert part_claim is not None
        assert leases.succeed(session, part_id, part_claim.token)
    dispatcher.send_pending()
    with valkey_server.client as client:
        client.delete(QUEUE_NAME)
    time.sleep(0.01)
    dispatcher.reap()
    dispatcher.send_pending()
    assert queued_job_ids(valkey_server) == [parent_id]


def test_jobs_that_rightly_wait_are_not_woken_again(
    dispatcher: Dispatcher, valkey_server: Any, add_job: AddJob
) -> None:
    job_ids = [add_job() for _ in range(3)]
    dispatcher.send_pending()
    for _ in range(3):
        time.sleep(0.01)
        dispatcher.reap()
        dispatcher.send_pending()
    assert queued_job_ids(valkey_server) == job_ids


def test_a_job_whose_lease_ran_out_is_queued_and_sent_again(
    dispatcher: Dispatcher,
    database: Database,
    valkey_server: Any,
    add_job: AddJob,
    read_job: ReadJob,
) -> None:
    job_id = add_job()
    with database.transaction() as session:
        assert leases.claim(session, job_id, lease_seconds=0.001)
    time.sleep(0.01)
    dispatcher.reap()
    dispatcher.send_pending()
    assert read_job(job_id).state == JobState.QUEUED
    assert job_id in queued_job_ids(valkey_server)


def test_a_round_forgets_processes_that_were_lost_long_ago(
    dispatcher: Dispatcher, database: Database
) -> None:
    lost = ProcessIdentity("process_1", ProcessKind.WORKER, host="", pid=1, version="")
    with database.transaction() as session:
        heartbeats.beat(session, lost, memory_bytes=None, job_id=None)
        long_ago = now() - 2 * heartbeats.FORGET_SECONDS
        session.execute(update(ProcessRecord).values(heartbeat_at=long_ago))
    dispatcher.tidy()
    with database.snapshot() as session:
        assert heartbeats.processes(session) == []


def test_a_round_removes_checkpoints_of_jobs_that_have_ended(
    dispatcher: Dispatcher, database: Database, add_job: AddJob
) -> None:
    ended, running = add_job(), add_job()
    with database.transaction() as session:
        for job_id in (ended, running):
            claim = leases.claim(session, job_id, 60)
            assert claim is not None
            checkpoints.save(session, job_id, "1.0", b"done so far")
            if job_id == ended:
                assert leases.succeed(session, job_id, claim.token)
    dispatcher.tidy()
    with database.snapshot() as session:
        assert checkpoints.load(session, ended, "1.0") is None
        assert checkpoints.load(session, running, "1.0") == b"done so far"


def test_a_round_replaces_many_counts_by_their_sum(
    dispatcher: Dispatcher, database: Database
) -> None:
    with database.transaction() as session:
        for _ in range(counters.COMPACT_ABOVE + 1):
            counters.add(session, [Count(Counter.ATTEMPTS, ("estimation",))])
    dispatcher.tidy()
    with database.snapshot() as session:
        [row] = session.scalars(select(CounterRecord)).all()
    assert row.amount == counters.COMPACT_ABOVE + 1


def test_a_round_removes_jobs_that_were_deleted(
    dispatcher: Dispatcher, database: Database, add_job: AddJob
) -> None:
    deleted, kept = add_job(), add_job()
    with database.transaction() as session:
        removal.hide(session, deleted)

    def jobs_of(tenant: str) -> list[str]:
        with database.of(tenant).snapshot() as session:
            return list(session.scalars(select(JobRecord.id)))

    assert jobs_of(NOBODY) == [deleted]
    dispatcher.tidy()
    assert (jobs_of(NOBODY), jobs_of(DEFAULT_TENANT)) == ([], [kept])


def test_it_is_told_that_workers_refuse_what_this_dispatcher_sends(
    dispatcher: Dispatcher,
    database: Database,
    add_job: AddJob,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("worker.dispatcher.REFUSALS_TOLD_SECONDS", 0.05)
    jobs = [add_job() for _ in range(2)]
    dispatcher.send_pending()
    with database.transaction() as session:
        assert leases.claim(session, jobs[0], 30, most_running=1)
        assert leases.claim(session, jobs[1], 30, most_running=1) is None
    dispatcher.tell_refusals()
    assert not caplog.records
    time.sleep(0.06)
    for _ in range(5):
        dispatcher.tell_refusals()
    [record] = caplog.records
    assert "no slot for 1 jobs" in record.message
    assert "VNCE_MAX_RUNNING_JOBS" in record.message
    assert record.message.endswith("is not set here")


def test_the_loop_looks_after_lost_workers_and_stops_when_told_while_messages_never_cease(
    dispatcher: Dispatcher, add_job: AddJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping = threading.Event()
    reap = dispatcher.reap
    num_rounds = 0

    def reap_and_count() -> None:
        nonlocal num_rounds
        reap()
        num_rounds += 1
        if num_rounds == 3:
            stopping.set()

    monkeypatch.setattr(dispatcher, "reap", reap_and_count)
    # Whenever a message is sent, another job is submitted.
    monkeypatch.setattr(dispatcher._app, "send_task", lambda *names, **options: add_job())
    add_job()
    loop = threading.Thread(target=dispatcher.run, args=[stopping], daemon=True)
    loop.start()
    loop.join(timeout=PATIENCE_SECONDS)
    assert (loop.is_alive(), num_rounds) == (False, 3)


@pytest.mark.faults
def test_the_loop_has_a_pulse_also_while_the_broker_is_away(
    dispatcher: Dispatcher, valkey_server: Any
) -> None:
    valkey_server.kill()
    assert not dispatcher.pulse.is_alive()
    stopping = threading.Event()
    loop = threading.Thread(target=dispatcher.run, args=[stopping])
    loop.start()
    try:
        wait_for(dispatcher.pulse.is_alive, "the loop")
    finally:
        stopping.set()
        loop.join(timeout=PATIENCE_SECONDS)


@pytest.mark.faults
def test_the_loop_goes_on_after_the_broker_was_away(
    dispatcher: Dispatcher, valkey_server: Any, add_job: AddJob
) -> None:
    valkey_server.kill()
    stopping = threading.Event()
    loop = threading.Thread(target=dispatcher.run, args=[stopping])
    loop.start()
    try:
        job_id = add_job()
        time.sleep(0.5)
        valkey_server.restart_empty()
        wait_for(lambda: job_id in queued_job_ids(valkey_server), "the message")
    finally:
        stopping.set()
        loop.join(timeout=PATIENCE_SECONDS)
    assert not loop.is_alive()

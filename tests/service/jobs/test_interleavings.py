"""Whatever the order in which workers, reaper and client act, a job ends once and rightly."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
)
from sqlalchemy import update

from service.db.clock import now
from service.db.database import Database
from service.db.tenant_names import DEFAULT_TENANT
from service.http.problems import ProblemCode, problem_document
from service.jobs import leases, outbox, reaping, repository
from service.jobs.leases import Claim, Progress
from service.jobs.outbox import Batch
from service.jobs.records import JobRecord, JobState
from service.jobs.specs.estimation import EstimationSpec
from tests.tables import METADATA

JOB = "job_1"
LEASE = 60.0
PROBLEM = problem_document(ProblemCode.NON_FINITE_OBJECTIVE, "It became infinite.")
SPEC = EstimationSpec(dataset_id="ds_1", variables=["a", "b"], seed=7).model_dump(mode="json")


class JobMachine(RuleBasedStateMachine):
    """One job, any number of workers that may have lost it, a reaper and a client."""

    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.database = Database("sqlite://").of(DEFAULT_TENANT)
        METADATA.create_all(self.database.engine)
        with self.database.transaction() as session:
            session.add(JobRecord(id=JOB, kind="estimation", spec=SPEC, max_attempts=3))
        self.holder: Claim | None = None
        self.num_attempts = 0
        self.cancellation_promised = False
        self.ended_as: JobState | None = None
        self.batch: Batch | None = None

    def teardown(self) -> None:
        self.database.dispose()

    def job(self) -> JobRecord:
        with self.database.snapshot() as session:
            return session.get_one(JobRecord, JOB)

    def end(self, state: JobState) -> None:
        assert self.ended_as is None
        self.ended_as, self.holder = state, None

    @rule(target=claims)
    def claim(self) -> Any:
        waits = self.ended_as is None and self.holder is None
        with self.database.transaction() as session:
            taken = leases.claim(session, JOB, LEASE)
        may = waits and not self.cancellation_promised and self.num_attempts < 3
        assert (taken is not None) == may
        if taken is None:
            return None
        self.holder = taken
        self.num_attempts += 1
        assert taken.attempt == self.num_attempts
        return taken

    @precondition(lambda self: self.holder is not None)
    @rule()
    def lease_runs_out_and_the_reaper_comes(self) -> None:
        with self.database.transaction() as session:
            session.execute(update(JobRecord).values(lease_expires_at=now() - 1))
            reaped = reaping.requeue_expired(session)
        self.holder = None
        if self.cancellation_promised:
            assert reaped.cancelled == [JOB]
            self.end(JobState.CANCELLED)
        elif self.num_attempts == 3:
            assert reaped.failed == [JOB]
            self.end(JobState.FAILED)
        else:
            assert reaped.requeued == [JOB]

    @rule()
    def reaper_comes_early(self) -> None:
        with self.database.transaction() as session:
            reaped = reaping.requeue_expired(session)
        assert reaped == reaping.Reaped([], [], [])

    @rule(worker=claims, fraction=st.floats(0, 1))
    def heartbeat(self, worker: Claim | None, fraction: float) -> None:
        if worker is None:
            return
        with self.database.transaction() as session:
            progress = Progress("fit", fraction, 1, None)
            beat = leases.heartbeat(session, JOB, worker.token, LEASE, progress)
        owned = worker == self.holder
        assert beat == leases.Heartbeat(owned, owned and self.cancellation_promised)

    @rule(worker=consumes(claims))
    def succeed(self, worker: Claim | None) -> None:
        if worker is None:
            return
        with self.database.transaction() as session:
            stored = leases.succeed(session, JOB, worker.token)
        assert stored == (worker == self.holder and not self.cancellation_promised)
        if worker == self.holder:
            self.end(JobState.SUCCEEDED if stored else JobState.CANCELLED)

    @rule(worker=consumes(claims))
    def fail(self, worker: Claim | None) -> None:
        if worker is None:
            return
        with self.database.transaction() as session:
            ended = leases.fail(session, JOB, worker.token, PROBLEM)
        assert ended == (worker == self.holder)
        if ended:
            self.end(JobState.FAILED)

    @rule(worker=consumes(claims))
    def release(self, worker: Claim | None) -> None:
        if worker is None:
            return
        with self.database.transaction() as session:
            released = leases.requeue(session, JOB, worker.token, attempt_counts=False)
        assert released == (worker == self.holder)
        if released:
            self.holder = None
            self.num_attempts -= 1
            if self.cancellation_promised:
                self.end(JobState.CANCELLED)

    @rule()
    def client_cancels(self) -> None:
        with self.database.transaction() as session:
            changed = repository.request_cancellation(session, JOB)
        assert changed == (self.ended_as is None)
        if changed:
            self.cancellation_promised = True
            if self.holder is None:
                self.end(JobState.CANCELLED)

    @invariant()
    def row_says_what_happened(self) -> None:
        job = self.job()
        running = JobState.RUNNING if self.holder else JobState.QUEUED
        assert job.state == (self.ended_as or running)
        assert job.attempt == self.num_attempts
        assert job.lease_token == (self.holder.token if self.holder else None)
        assert (job.finished_at is not None) == (self.ended_as is not None)
        assert (job.error is not None) == (self.ended_as is JobState.FAILED)

    @rule()
    def a_dispatcher_reserves_messages(self) -> None:
        with self.database.transaction() as session:
            self.batch = outbox.reserve(session, 10)

    @precondition(lambda self: self.batch is not None)
    @rule(num_sent=st.integers(0, 1))
    def the_dispatcher_has_tried_to_send_them(self, num_sent: int) -> None:
        with self.database.transaction() as session:
            outbox.settle(session, self.batch, num_sent)
        self.batch = None

    @precondition(lambda self: self.job().send_after is not None)
    @rule()
    def time_passes(self) -> None:
        with self.database.transaction() as session:
            long_after = JobRecord.send_after - outbox.RESERVATION_SECONDS
            session.execute(update(JobRecord).values(send_after=long_after))

    @invariant()
    def a_job_has_a_message_to_be_sent_only_while_it_waits_and_was_sent_one_otherwise(self) -> None:
        job = self.job()
        if job.state != JobState.QUEUED:
            assert job.send_after is None
        elif job.send_after is None:
            assert job.sent_at is not None


TestInterleavings = JobMachine.TestCase
TestInterleavings.settings = settings(
    max_examples=settings().max_examples // 2, stateful_step_count=20
)

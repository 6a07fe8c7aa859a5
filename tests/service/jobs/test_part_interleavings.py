"""Whatever the order in which a job and its parts end, each ends once and none is forgotten."""

from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
)
from sqlalchemy import select, update

from service.db.clock import now
from service.db.database import Database
from service.db.tenant_names import DEFAULT_TENANT
from service.http.problems import ProblemCode, problem_document
from service.jobs import job_parts, leases, reaping, repository
from service.jobs.leases import Claim
from service.jobs.records import JobRecord, JobState
from service.jobs.specs.experiment import ExperimentPartSpec, ExperimentSpec
from tests.service.jobs.messages import send, to_be_sent
from tests.tables import METADATA

pytestmark = pytest.mark.slow

PARENT = "job_parent"
NUM_PARTS = 2
LEASE = 60.0
CHOICES = {"experiment": {"name": "mixture-em"}, "scale": "quick", "seed": 1, "tag": None}
SPEC = ExperimentSpec.model_validate({"kind": "experiment", **CHOICES}).model_dump(mode="json")
PARTS = [
    ExperimentPartSpec.model_validate(
        {"kind": "experiment-part", "part": part, "label": str(part), **CHOICES}
    )
    for part in range(NUM_PARTS)
]
PROBLEM = problem_document(ProblemCode.INTERNAL, "It broke.")
ANY_JOB = st.integers(0, NUM_PARTS)


class FamilyMachine(RuleBasedStateMachine):
    """A job and its parts, any number of workers that may have lost one, a reaper and a client."""

    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.database = Database("sqlite://").of(DEFAULT_TENANT)
        METADATA.create_all(self.database.engine)
        with self.database.transaction() as session:
            session.add(JobRecord(id=PARENT, kind="experiment", spec=SPEC, max_attempts=2))
            session.flush()
            claim = leases.claim(session, PARENT, LEASE)
            assert claim is not None
            assert leases.split(session, PARENT, claim.token, PARTS)
            parts = job_parts.parts_of(session, PARENT)
        self.job_ids = [PARENT, *(part.id for part in parts)]
        self.held: dict[str, str] = {}
        self.ended: dict[str, JobState] = {}
        self.was_cancelled = False

    def teardown(self) -> None:
        self.database.dispose()

    def states(self) -> dict[str, JobState]:
        with self.database.snapshot() as session:
            rows = session.execute(select(JobRecord.id, JobRecord.state)).all()
        return {job_id: JobState(state) for job_id, state in rows}

    def holds(self, worker: Claim) -> bool:
        return self.held.get(worker.job_id) == worker.token

    @rule(target=claims, which=ANY_JOB)
    def a_message_arrives(self, which: int) -> object:
        job_id = self.job_ids[which]
        before = self.states()
        send(self.database)
        with self.database.transaction() as session:
            taken = leases.claim(session, job_id, LEASE)
        if taken is None:
            return multiple()
        assert job_id not in self.held
        if taken.is_split:
            assert all(before[part].is_terminal for part in self.job_ids[1:])
        self.held[job_id] = taken.token
        return taken

    @rule(worker=consumes(claims), how=st.sampled_from(["succeed", "fail", "release", "retry"]))
    def a_worker_ends_its_attempt(self, worker: Claim, how: str) -> None:
        job_id, token = worker.job_id, worker.token
        if how == "retry" and worker.attempt == worker.max_attempts:
            how = "fail"
        with self.database.transaction() as session:
            cancelled = session.get_one(JobRecord, job_id).cancel_requested_at is not None
            if how == "fail":
                done = leases.fail(session, job_id, token, PROBLEM)
            else:
                done = {
                    "succeed": leases.succeed,
                    "release": partial(leases.requeue, attempt_counts=False),
                    "retry": partial(leases.requeue, attempt_counts=True),
                }[how](session, job_id, token)
        assert done == (self.holds(worker) and not (how == "succeed" and cancelled))
        if self.holds(worker):
            del self.held[job_id]

    @precondition(lambda self: self.held)
    @rule(which=ANY_JOB)
    def a_lease_runs_out_and_the_reaper_comes(self, which: int) -> None:
        job_id = self.job_ids[which]
        with self.database.transaction() as session:
            session.execute(
                update(JobRecord)
                .where(JobRecord.id == job_id, JobRecord.lease_token.is_not(None))
                .values(lease_expires_at=now() - 1)
            )
            reaped = reaping.requeue_expired(session)
        lost = [*reaped.requeued, *reaped.failed, *reaped.cancelled]
        assert lost == ([job_id] if job_id in self.held else [])
        self.held.pop(job_id, None)

    # More often, little else would happen.
    @precondition(lambda self: not self.was_cancelled)
    @rule(which=ANY_JOB)
    def the_client_cancels(self, which: int) -> None:
        self.was_cancelled = True
        job_id = self.job_ids[which]
        was_terminal = self.states()[job_id].is_terminal
        with self.database.transaction() as session:
            assert repository.request_cancellation(session, job_id) == (not was_terminal)

    @invariant()
    def what_has_ended_stays_as_it_ended(self) -> None:
        states = self.states()
        assert {job_id: states[job_id] for job_id in self.ended} == self.ended
        self.ended = {job_id: state for job_id, state in states.items() if state.is_terminal}

    @invariant()
    def a_job_has_a_message_to_be_sent_only_while_it_waits_and_was_sent_one_otherwise(self) -> None:
        with self.database.snapshot() as session:
            waiting = set(session.scalars(select(JobRecord.id).where(job_parts.waits())))
            was_sent = JobRecord.sent_at.is_not(None)
            sent = set(session.scalars(select(JobRecord.id).where(was_sent)))
        unsent = set(to_be_sent(self.database))
        assert unsent <= waiting <= unsent | sent

    @invariant()
    def who_holds_a_job_is_who_claimed_it_last(self) -> None:
        with self.database.snapshot() as session:
            query = select(JobRecord.id, JobRecord.lease_token).where(
                JobRecord.lease_token.is_not(None)
            )
            assert dict(session.execute(query).all()) == self.held

    @invariant()
    def parts_of_a_cancelled_job_do_not_begin(self) -> None:
        states = self.states()
        if states[PARENT] == JobState.CANCELLED:
            assert JobState.QUEUED not in states.values()

    @invariant()
    def progress_of_a_split_job_counts_the_parts_that_ended(self) -> None:
        num_ended = sum(self.states()[part].is_terminal for part in self.job_ids[1:])
        with self.database.snapshot() as session:
            parent = session.get_one(JobRecord, PARENT)
        if parent.state == JobState.RUNNING and num_ended < NUM_PARTS:
            assert parent.progress is not None
            assert parent.progress["iteration"] == num_ended


TestFamilyInterleavings = FamilyMachine.TestCase
TestFamilyInterleavings.settings = settings(
    max_examples=settings().max_examples // 2, stateful_step_count=20
)

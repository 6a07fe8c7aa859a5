"""One worker at a time holds a job, and only the holder can end it."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from service.db.database import Database
from service.http.problems import Problem, ProblemCode, problem_document
from service.jobs import leases, repository
from service.jobs.leases import Claim, Progress
from service.jobs.records import JobRecord, JobState
from tests.service.jobs.messages import to_be_sent

AddJob = Callable[..., str]
ReadJob = Callable[[str], JobRecord]
LEASE = 30.0
# A lease that has run out when it is given.
RUN_OUT = -1.0
PROGRESS = Progress(stage="fit", fraction=0.5, iteration=3, objective=-1.5)
PROBLEM = problem_document(ProblemCode.NON_FINITE_OBJECTIVE, "It became infinite.")
release = partial(leases.requeue, attempt_counts=False)
ENDINGS: dict[str, Callable[[Session, str, str], bool]] = {
    "succeed": leases.succeed,
    "fail": lambda session, job_id, token: leases.fail(session, job_id, token, PROBLEM),
    "cancel": leases.cancel,
    "release": release,
    "retry": partial(leases.requeue, attempt_counts=True),
}


def claim(database: Database, job_id: str, lease_seconds: float = LEASE) -> Claim | None:
    with database.transaction() as session:
        return leases.claim(session, job_id, lease_seconds)


def claimed(database: Database, job_id: str, lease_seconds: float = LEASE) -> Claim:
    taken = claim(database, job_id, lease_seconds)
    assert taken is not None
    return taken


def request_cancellation(database: Database, job_id: str) -> None:
    with database.transaction() as session:
        assert repository.request_cancellation(session, job_id)


def test_claim_hands_over_what_the_job_asks_for(database: Database, add_job: AddJob) -> None:
    taken = claimed(database, add_job(ground_truth=[["a", "b"]]))
    assert taken.spec.seed == 7
    assert taken.spec.variables == ["a", "b"]
    assert taken.ground_truth == [["a", "b"]]
    assert (taken.attempt, taken.max_attempts) == (1, 3)


def test_claimed_job_runs_under_a_lease(
    database: Database, add_job: AddJob, read_job: ReadJob
) -> None:
    taken = claimed(database, add_job())
    job = read_job(taken.job_id)
    assert job.state == JobState.RUNNING
    assert job.lease_token == taken.token
    assert job.lease_expires_at is not None
    assert job.heartbeat_at is not None
    # Both are read from the clock by one statement, some microseconds apart.
    assert job.lease_expires_at - job.heartbeat_at == pytest.approx(LEASE, abs=0.01)


def test_second_claim_of_a_running_job_gets_nothing(database: Database, add_job: AddJob) -> None:
    job_id = add_job()
    claimed(database, job_id)
    assert claim(database, job_id) is None


def test_claim_of_an_unknown_job_gets_nothing(database: Database) -> None:
    assert claim(database, "job_unknown") is None


def test_expired_lease_can_be_claimed_as_the_next_attempt(
    database: Database, add_job: AddJob
) -> None:
    job_id = add_job()
    first = claimed(database, job_id, RUN_OUT)
    second = claimed(database, job_id)
    assert second.attempt == 2
    assert second.token != first.token


def test_a_job_to_be_cancelled_whose_lease_has_run_out_is_not_begun_again(
    database: Database, add_job: AddJob
) -> None:
    job_id = add_job()
    claimed(database, job_id, RUN_OUT)
    request_cancellation(database, job_id)
    assert claim(database, job_id) is None


def test_an_attempt_begins_without_the_progress_of_the_one_before(
    database: Database, add_job: AddJob, read_job: ReadJob
) -> None:
    job_id = add_job()
    lost = claimed(database, job_id)
    with database.transaction() as session:
        assert leases.heartbeat(session, job_id, lost.token, RUN_OUT, PROGRESS).owned
    claimed(database, job_id)
    assert (read_job(job_id).progress, read_job(job_id).progress_at) == (None, None)


def test_no_claim_beyond_the_last_attempt(database: Database, add_job: AddJob) -> None:
    job_id = add_job(max_attempts=1)
    claimed(database, job_id, RUN_OUT)
    assert claim(database, job_id) is None


def test_one_of_many_simultaneous_claims_wins(database: Database, add_job: AddJob) -> None:
    job_id = add_job()
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: claim(database, job_id), range(8)))
    assert sum(one is not None for one in taken) == 1


def test_heartbeat_renews_the_lease_and_stores_progress(
    database: Database, add_job: AddJob, read_job: ReadJob
) -> None:
    taken = claimed(database, add_job(), RUN_OUT)
    with database.transaction() as session:
        beat = leases.heartbeat(session, taken.job_id, taken.token, LEASE, PROGRESS)
    assert beat == leases.Heartbeat(owned=True, cancel_requested=False)
    assert claim(database, taken.job_id) is None
    assert read_job(taken.job_id).progress == {
        "stage": "fit",
        "fraction": 0.5,
        "iteration": 3,
        "objective": -1.5,
    }


def test_heartbeat_without_progress_keeps_the_stored_one(
    database: Database, add_job: AddJob, read_job: ReadJob
) -> None:
    taken = claimed(database, add_job())
    with database.transaction() as session:
        leases.heartbeat(session, taken.job_id, taken.token, LEASE, PROGRESS)
        before = session.get_one(JobRecord, taken.job_id).progress
        leases.heartbeat(session, taken.job_id, taken.token, LEASE, None)
    assert read_job(taken.job_id).progress == before


@pytest.mark.parametrize("objective", [math.nan, math.inf, -math.inf])
def test_progress_stores_an_undefined_objective_as_null(objective: float) -> None:
    progress = Progress(stage="fit", fraction=0.5, iteration=3, objective=objective)
    assert progress.as_document()["objective"] is None


@pytest.mark.parametrize(("told", "stored"), [(1 + 1e-12, 1.0), (-1e-12, 0.0), (0.25, 0.25)])
def test_progress_stores_a_fraction_from_0_to_1(told: float, stored: float) -> None:
    progress = Progress(stage="fit", fraction=told, iteration=3, objective=None)
    assert progress.as_document()["fraction"] == stored


def test_heartbeat_of_a_lost_lease_says_so_and_changes_nothing(
    database: Database, add_job: AddJob, read_job: ReadJob
) -> None:
    job_id = add_job()
    lost = claimed(database, job_id, RUN_OUT)
    holder = claimed(database, job_id)
    with database.transaction() as session:
        beat = leases.heartbeat(session, job_id, lost.token, LEASE, PROGRESS)
    assert not beat.owned
    job = read_job(job_id)
    assert job.progress is None
    assert job.lease_token == holder.token


def test_heartbeat_tells_of_a_requested_cancellation(database: Database, add_job: AddJob) -> None:
    taken = claimed(database, add_job())
    request_cancellation(database, taken.job_id)
    with database.transaction() as session:
        beat = leases.heartbeat(session, taken.job_id, taken.token, LEASE, None)
    assert beat == leases.Heartbeat(owned=True, cancel_requested=True)


def test_success_ends_the_job(database: Database, add_job: AddJob, read_job: ReadJob) -> None:
    taken = claimed(database, add_job())
    with database.transaction() as session:
        assert leases.succeed(session, taken.job_id, taken.token)
    job = read_job(taken.job_id)
    assert job.state == JobState.SUCCEEDED
    assert job.finished_at is not None
    assert job.lease_token is None


def test_success_after_a_cancellation_was_promised_is_a_cancellation(
    database: Database, add_job: AddJob, read_job: ReadJob
) -> None:
    taken = claimed(database, add_job())
    request_cancellation(database, taken.job_id)
    with database.transaction() as session:
        assert not leases.succeed(session, taken.job_id, taken.token)
    assert read_job(taken.job_id).state == JobState.CANCELLED


def test_failure_keeps_its_reason(database: Database, add_job: AddJob, read_job: ReadJob) -> None:
    taken = claimed(database, add_job())
    with database.transaction() as session:
        assert leases.fail(session, taken.job_id, taken.token, PROBLEM)
    job = read_job(taken.job_id)
    assert job.state == JobState.FAILED
    assert Problem.model_validate(job.error) == PROBLEM


def test_cancelled_by_its_worker(database: Database, add_job: AddJob, read_job: ReadJob) -> None:
    taken = claimed(database, add_job())
    with database.transaction() as session:
        assert leases.cancel(session, taken.job_id, taken.token)
    assert read_job(taken.job_id).state == JobState.CANCELLED


@pytest.mark.parametrize("ending", ["succeed", "fail", "cancel", "release", "retry"])
def test_late_end_of_a_lost_lease_changes_nothing(
    database: Database, add_job: AddJob, read_job: ReadJob, ending: str
) -> None:
    job_id = add_job()
    lost = claimed(database, job_id, RUN_OUT)
    holder = claimed(database, job_id)
    with database.transaction() as session:
        assert not ENDINGS[ending](session, job_id, lost.token)
    job = read_job(job_id)
    assert (job.state, job.attempt, job.lease_token) == (JobState.RUNNING, 2, holder.token)


@pytest.mark.parametrize("state", [state for state in JobState if state.is_terminal])
def test_final_state_is_final(
    database: Database, add_job: AddJob, read_job: ReadJob, state: JobState
) -> None:
    taken = claimed(database, add_job())
    with database.transaction() as session:
        # The token is left in place, so that only the state speaks against each step.
        session.execute(
            update(JobRecord).where(JobRecord.id == taken.job_id).values(state=state.value)
        )
    with database.transaction() as session:
        assert not leases.succeed(session, taken.job_id, taken.token)
        assert not leases.cancel(session, taken.job_id, taken.token)
        assert not release(session, taken.job_id, taken.token)
        assert not leases.heartbeat(session, taken.job_id, taken.token, LEASE, None).owned
        assert not repository.request_cancellation(session, taken.job_id)
        assert leases.claim(session, taken.job_id, LEASE) is None
    assert read_job(taken.job_id).state == state


def test_release_gives_the_attempt_back_and_wakes_another_worker(
    database: Database, add_job: AddJob, read_job: ReadJob
) -> None:
    taken = claimed(database, add_job())
    with database.transaction() as session:
        leases.heartbeat(session, taken.job_id, taken.token, LEASE, PROGRESS)
        assert release(session, taken.job_id, taken.token)
    assert to_be_sent(database) == [taken.job_id]
    job = read_job(taken.job_id)
    assert (job.state, job.attempt) == (JobState.QUEUED, 0)
    assert (job.progress, job.progress_at) == (None, None)


def test_release_of_a_job_to_be_cancelled_cancels_it(
    database: Database, add_job: AddJob, read_job: ReadJob
) -> None:
    taken = claimed(database, add_job())
    request_cancellation(database, taken.job_id)
    with database.transaction() as session:
        assert release(session, taken.job_id, taken.token)
    job = read_job(taken.job_id)
    assert job.state == JobState.CANCELLED
    assert job.finished_at is not None


def test_an_attempt_that_counts_is_not_given_back(
    database: Database, add_job: AddJob, read_job: ReadJob
) -> None:
    taken = claimed(database, add_job())
    with database.transaction() as session:
        assert leases.requeue(session, taken.job_id, taken.token, attempt_counts=True)
    job = read_job(taken.job_id)
    assert (job.state, job.attempt) == (JobState.QUEUED, 1)
    assert to_be_sent(database) == [taken.job_id]


def test_a_cancelled_job_keeps_how_far_it_came(
    database: Database, add_job: AddJob, read_job: ReadJob
) -> None:
    taken = claimed(database, add_job())
    with database.transaction() as session:
        leases.heartbeat(session, taken.job_id, taken.token, LEASE, PROGRESS)
    request_cancellation(database, taken.job_id)
    with database.transaction() as session:
        assert release(session, taken.job_id, taken.token)
    assert read_job(taken.job_id).progress == PROGRESS.as_document()

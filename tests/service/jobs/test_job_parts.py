"""Jobs that are split into parts: told when they end, woken when all have, deleted with them."""

from collections.abc import Callable
from functools import partial

import pytest
from sqlalchemy.orm import Session

from service.db.database import Database
from service.http.problems import ProblemCode, ProblemError, problem_document
from service.jobs import job_parts, leases, lifecycle, reaping, repository
from service.jobs import result_removal as removal
from service.jobs.leases import Claim
from service.jobs.records import JobRecord, JobState
from service.jobs.result_records import ResultRecord
from service.jobs.specs.experiment import ExperimentPartSpec, ExperimentSpec
from tests.service.jobs.messages import send

AddJob = Callable[..., str]
ReadJob = Callable[[str], JobRecord]

CHOICES = {"experiment": {"name": "mixture-em"}, "scale": "quick", "seed": 1, "tag": "mine"}
EXPERIMENT = ExperimentSpec.model_validate({"kind": "experiment", **CHOICES})
PARTS = [
    ExperimentPartSpec.model_validate(
        {"kind": "experiment-part", "part": i, "label": f"part {i}", **CHOICES}
    )
    for i in range(3)
]
GONE = problem_document(ProblemCode.INTERNAL, "gone")


@pytest.fixture
def parent_id(add_job: AddJob) -> str:
    """Return the id of a queued experiment."""
    return add_job(kind="experiment", spec=EXPERIMENT.model_dump(mode="json"), tag="mine")


@pytest.fixture
def part_ids(database: Database, parent_id: str) -> list[str]:
    """Return the ids of the three parts that the experiment has been split into."""
    claim = claim_of(database, parent_id)
    with database.transaction() as session:
        assert leases.split(session, parent_id, claim.token, PARTS)
    with database.snapshot() as session:
        return [part.id for part in job_parts.parts_of(session, parent_id)]


def claim_of(database: Database, job_id: str, seconds: float = 60) -> Claim:
    with database.transaction() as session:
        claim = leases.claim(session, job_id, seconds)
    assert claim is not None
    return claim


def succeed(database: Database, job_id: str) -> None:
    claim = claim_of(database, job_id)
    with database.transaction() as session:
        assert leases.succeed(session, job_id, claim.token)


ENDINGS: dict[str, Callable[[Session, str, str], bool]] = {
    "succeed": leases.succeed,
    "fail": lambda session, job_id, token: leases.fail(session, job_id, token, GONE),
    "cancel": leases.cancel,
    "release": partial(leases.requeue, attempt_counts=False),
}


def test_splitting_makes_a_queued_job_and_a_message_for_each_part_and_costs_no_attempt(
    database: Database, parent_id: str, part_ids: list[str], read_job: ReadJob
) -> None:
    parent = read_job(parent_id)
    assert (parent.state, parent.attempt, parent.lease_token) == ("running", 0, None)
    assert send(database) == part_ids
    assert [read_job(part).spec["label"] for part in part_ids] == ["part 0", "part 1", "part 2"]
    assert {read_job(part).tag for part in part_ids} == {"mine"}


def test_a_split_job_cannot_be_claimed_while_a_part_is_at_work(
    database: Database, parent_id: str, part_ids: list[str]
) -> None:
    succeed(database, part_ids[0])
    claim_of(database, part_ids[1])
    with database.transaction() as session:
        assert leases.claim(session, parent_id, 60) is None


def test_the_last_part_to_end_wakes_the_job_whatever_became_of_the_parts(
    database: Database, parent_id: str, part_ids: list[str]
) -> None:
    send(database)
    succeed(database, part_ids[0])
    failing = claim_of(database, part_ids[1])
    with database.transaction() as session:
        assert leases.fail(session, part_ids[1], failing.token, GONE)
    assert send(database) == []
    with database.transaction() as session:
        lifecycle.request_cancellation(session, part_ids[2])
    assert send(database) == [parent_id]
    claim = claim_of(database, parent_id)
    assert (claim.is_split, claim.attempt) == (True, 1)


@pytest.mark.parametrize("ending", list(ENDINGS))
def test_whichever_way_its_worker_ends_it_the_last_part_wakes_the_job(
    database: Database, parent_id: str, part_ids: list[str], ending: str
) -> None:
    for part in part_ids[:2]:
        succeed(database, part)
    claim = claim_of(database, part_ids[2])
    if ending == "release":  # which leaves it to another worker, unless it is to be cancelled
        with database.transaction() as session:
            assert repository.request_cancellation(session, part_ids[2])
    send(database)
    with database.transaction() as session:
        assert ENDINGS[ending](session, part_ids[2], claim.token)
    assert send(database) == [parent_id]
    with database.snapshot() as session:
        progress = lifecycle.read(session, parent_id).progress
    assert progress is not None
    assert progress.iteration == 3


def test_progress_counts_the_parts_that_have_ended(
    database: Database, parent_id: str, part_ids: list[str]
) -> None:
    succeed(database, part_ids[0])
    with database.snapshot() as session:
        job = lifecycle.read(session, parent_id)
    assert job.progress is not None
    assert job.parts is not None
    assert (job.progress.stage, job.progress.iteration) == ("parts", 1)
    assert job.progress.fraction == pytest.approx(0.95 / 3)
    assert (job.parts.n_total, job.parts.n_succeeded, job.parts.n_queued) == (3, 1, 2)
    assert job.links.parts == f"/v1/jobs?parent_id={parent_id}"


def test_cancelling_the_job_cancels_it_at_once_with_its_waiting_parts_and_stops_running_ones(
    database: Database, parent_id: str, part_ids: list[str], read_job: ReadJob
) -> None:
    succeed(database, part_ids[0])
    running = claim_of(database, part_ids[1])
    with database.transaction() as session:
        job, changed = lifecycle.request_cancellation(session, parent_id)
    assert (job.state, changed) == ("cancelled", True)
    assert [read_job(part).state for part in part_ids] == ["succeeded", "running", "cancelled"]
    with database.transaction() as session:
        assert leases.heartbeat(session, running.job_id, running.token, 60, None).cancel_requested
        assert leases.cancel(session, running.job_id, running.token)
    assert read_job(parent_id).state == "cancelled"


def test_a_job_that_is_to_be_cancelled_is_not_split(
    database: Database, parent_id: str, read_job: ReadJob
) -> None:
    claim = claim_of(database, parent_id)
    with database.transaction() as session:
        lifecycle.request_cancellation(session, parent_id)
        assert leases.split(session, parent_id, claim.token, PARTS)
    assert read_job(parent_id).state == "cancelled"
    with database.snapshot() as session:
        assert job_parts.parts_of(session, parent_id) == []


def test_a_lost_lease_splits_nothing(database: Database, parent_id: str) -> None:
    claim_of(database, parent_id)
    with database.transaction() as session:
        assert not leases.split(session, parent_id, "lease_of_another", PARTS)
        assert job_parts.parts_of(session, parent_id) == []


def test_a_worker_lost_while_it_puts_parts_together_leaves_the_job_to_another(
    database: Database, parent_id: str, part_ids: list[str], read_job: ReadJob
) -> None:
    for part in part_ids:
        succeed(database, part)
    claim_of(database, parent_id, seconds=-1)
    send(database)
    with database.transaction() as session:
        reaped = reaping.requeue_expired(session)
    assert reaped.requeued == [parent_id]
    assert send(database) == [parent_id]
    assert read_job(parent_id).state == "running"
    assert claim_of(database, parent_id).attempt == 2


def test_a_part_whose_worker_is_lost_for_good_still_wakes_the_job(
    database: Database, parent_id: str, part_ids: list[str], read_job: ReadJob
) -> None:
    for part in part_ids[:2]:
        succeed(database, part)
    for _ in range(3):
        claim_of(database, part_ids[2], seconds=-1)
        send(database)
        with database.transaction() as session:
            reaping.requeue_expired(session)
    assert read_job(part_ids[2]).state == "failed"
    assert send(database) == [parent_id]


def test_a_wake_up_that_was_lost_is_sent_again(
    database: Database, parent_id: str, part_ids: list[str]
) -> None:
    for part in part_ids:
        succeed(database, part)
    send(database)
    with database.transaction() as session:
        assert reaping.resend_stale(session, -1, num_in_queue=0) == [parent_id]


def test_a_released_job_that_was_split_can_be_claimed_again(
    database: Database, parent_id: str, part_ids: list[str], read_job: ReadJob
) -> None:
    for part in part_ids:
        succeed(database, part)
    claim = claim_of(database, parent_id)
    send(database)
    with database.transaction() as session:
        assert ENDINGS["release"](session, parent_id, claim.token)
    assert send(database) == [parent_id]
    # As it was while its parts were at work: not in the queue a second time.
    assert read_job(parent_id).state == "running"
    assert claim_of(database, parent_id).is_split


def test_lists_show_parts_only_when_asked_for_them(
    database: Database, parent_id: str, part_ids: list[str]
) -> None:
    def listed(parent: str | None) -> list[str]:
        wanted = repository.JobFilter(None, None, None, None, parent_id=parent)
        with database.snapshot() as session:
            return sorted(job.id for job in repository.newest(session, wanted, 10, None))

    assert listed(None) == [parent_id]
    assert listed(parent_id) == sorted(part_ids)


def test_parts_do_not_count_among_the_jobs_that_a_client_may_have_unfinished(
    database: Database, part_ids: list[str]
) -> None:
    with database.snapshot() as session:
        # Like their job they came without a key.
        assert repository.has_unfinished(session, None, 1)
        assert not repository.has_unfinished(session, None, 2)


def test_parts_are_deleted_with_their_job_and_not_alone(
    database: Database, parent_id: str, part_ids: list[str]
) -> None:
    for part in part_ids:
        succeed(database, part)
    with database.transaction() as session, pytest.raises(ProblemError) as refusal:
        lifecycle.remove(session, part_ids[0])
    assert refusal.value.code is ProblemCode.JOB_IS_A_PART
    succeed(database, parent_id)
    with database.transaction() as session:
        lifecycle.remove(session, parent_id)
    with database.snapshot() as session:
        assert session.get(JobRecord, part_ids[0]) is None


def test_results_of_parts_are_kept_until_their_job_has_ended_however_old_they_are(
    database: Database, parent_id: str, part_ids: list[str]
) -> None:
    for part in part_ids:
        succeed(database, part)
        with database.transaction() as session:
            session.add(ResultRecord(job_id=part, created_at=0.0, document={}, sha256=""))
    with database.transaction() as session:
        assert removal.remove_older_than(session, 60) == []
    claim = claim_of(database, parent_id)
    with database.transaction() as session:
        assert removal.remove_older_than(session, 60) == []
        assert leases.succeed(session, parent_id, claim.token)
        assert removal.remove_older_than(session, 60) == sorted(part_ids)


def test_parts_come_in_the_order_in_which_they_were_made(
    database: Database, parent_id: str
) -> None:
    parts = [
        ExperimentPartSpec.model_validate(
            {"kind": "experiment-part", "part": i, "label": f"part {i}", **CHOICES}
        )
        for i in range(12)
    ]
    claim = claim_of(database, parent_id)
    with database.transaction() as session:
        assert leases.split(session, parent_id, claim.token, parts)
        # By number, not by its digits: 2 comes before 10.
        assert [part.spec["part"] for part in job_parts.parts_of(session, parent_id)] == [
            *range(12)
        ]


def test_states_of_parts_are_counted_for_several_jobs_at_once(
    database: Database, parent_id: str, part_ids: list[str], add_job: AddJob
) -> None:
    childless = add_job()
    succeed(database, part_ids[1])
    with database.snapshot() as session:
        counts = job_parts.part_counts(session, [parent_id, childless])
    assert set(counts) == {parent_id}
    assert counts[parent_id].by_state == {JobState.QUEUED: 2, JobState.SUCCEEDED: 1}

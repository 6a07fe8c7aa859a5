"""What may happen to a job on a client's request, and in which order.

Every function works in the caller's transaction: a job, its wake-up message and its idempotency
key are one commit.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Self

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.identifiers import new_id
from service.jobs import family, outbox, removal, repository
from service.jobs.plans import Plan
from service.jobs.records import IdempotencyRecord, JobRecord, JobState
from service.jobs.schemas import JobRead, describe
from service.jobs.specs import JobCreate
from service.metrics import job_counts
from service.problems import ProblemCode, ProblemError
from service.results import repository as results
from service.settings import Settings

# When it is worth trying again, in seconds.
RETRY_AFTER_SECONDS = "30"


@dataclass(frozen=True)
class IdempotencyKey:
    """A client's name for one submission, and the hash of what it submitted."""

    key: str
    body_sha256: str


@dataclass(frozen=True)
class Submitter:
    """Where a submission comes from."""

    # None where nobody is asked for a key.
    api_key_id: str | None
    # What workers log about the job names this request.
    request_id: str | None


@dataclass(frozen=True)
class SubmissionLimits:
    """What one job, and all jobs of one API key, may take."""

    max_attempts: int
    max_unfinished_jobs: int

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the limits that the operator has set."""
        return cls(settings.max_attempts, settings.max_unfinished_jobs)


def idempotency_key(key: str, body: JobCreate) -> IdempotencyKey:
    """Return the key with a hash of what the client has set, however it was written down."""
    canonical = json.dumps(body.model_dump(mode="json", exclude_unset=True), sort_keys=True)
    return IdempotencyKey(key, hashlib.sha256(canonical.encode()).hexdigest())


def find_replay(session: Session, key: IdempotencyKey) -> JobRecord | None:
    """Return the job that this key has made before, or None.

    Raises `ProblemError` if it was made from another body.
    """
    known = repository.find_by_key(session, key.key)
    if known is None:
        return None
    if known.body_sha256 != key.body_sha256:
        raise ProblemError(
            ProblemCode.IDEMPOTENCY_KEY_REUSED,
            f"This Idempotency-Key has already made job {known.job_id} from another body; "
            "use a new key for a new job.",
        )
    return existing(session, known.job_id)


def submit(
    session: Session,
    plan: Plan,
    limits: SubmissionLimits,
    submitter: Submitter,
    key: IdempotencyKey | None,
) -> tuple[JobRecord, bool]:
    """Store the planned job in state `queued`; return it and whether it is new.

    Raises `ProblemError` if as many jobs of the submitter as may wait or run do so. Of concurrent
    submissions under one idempotency key one makes the job, and the others are handed it.
    """
    _refuse_too_many(session, limits.max_unfinished_jobs, submitter.api_key_id)
    job = JobRecord(
        id=new_id("job"),
        kind=plan.spec.kind,
        state=JobState.QUEUED,
        spec=plan.spec.model_dump(mode="json"),
        dataset_id=None if plan.data is None else plan.data.dataset_id,
        ground_truth=plan.ground_truth,
        tag=plan.spec.tag,
        api_key_id=submitter.api_key_id,
        request_id=submitter.request_id,
        max_attempts=limits.max_attempts,
    )
    try:
        with session.begin_nested():
            session.add(job)
            session.flush()
            if key is not None:
                session.add(
                    IdempotencyRecord(key=key.key, job_id=job.id, body_sha256=key.body_sha256)
                )
                session.flush()
    except IntegrityError:
        made = None if key is None else find_replay(session, key)
        if made is None:
            raise
        return made, False
    outbox.announce(session, [job.id])
    job_counts.submitted(session, [job.kind])
    return job, True


def _refuse_too_many(session: Session, most: int, api_key_id: str | None) -> None:
    if repository.has_unfinished(session, api_key_id, most):
        raise ProblemError(
            ProblemCode.TOO_MANY_JOBS,
            f"{most} jobs wait or run, which is as many as may; submit more when some have ended.",
            headers={"Retry-After": RETRY_AFTER_SECONDS},
        )


def request_cancellation(session: Session, job_id: str) -> tuple[JobRecord, bool]:
    """Cancel a waiting job at once, tell a running one to stop; return it and whether it changed.

    A job in a final state stays as it is.
    """
    changed = repository.request_cancellation(session, job_id)
    return existing(session, job_id), changed


def remove(session: Session, job_id: str) -> None:
    """Delete a job in a final state with all that it has left.

    Its parts go with it. Raises `ProblemError` if it waits or runs, or if it is a part itself.
    """
    # Locked before its state is read: a worker that stores a result now is waited for.
    family.lock(session, [job_id])
    job = existing(session, job_id)
    if job.parent_id is not None:
        raise ProblemError(
            ProblemCode.JOB_IS_A_PART,
            f"Job {job_id} is a part of job {job.parent_id}, with which it is deleted.",
        )
    if not JobState(job.state).is_terminal:
        raise ProblemError(
            ProblemCode.JOB_NOT_TERMINAL,
            f"Job {job_id} is {job.state}; cancel it first: PUT /v1/jobs/{job_id}/cancellation.",
        )
    part_ids = family.lock_parts(session, job_id)
    if len(part_ids) > removal.MOST_AT_ONCE:
        removal.hide(session, job_id)
        return
    for owner in sorted([job_id, *part_ids]):
        results.remove(session, owner)
    repository.remove(session, job_id)


def described(session: Session, job_id: str) -> JobRead:
    """Return what the API says about a job; raises `ProblemError` if there is none."""
    job = existing(session, job_id)
    counts = family.part_counts(session, [job_id]) if job.is_split else {}
    return describe(job, counts.get(job_id))


def existing(session: Session, job_id: str) -> JobRecord:
    """Return the job; raises `ProblemError` if there is none."""
    job = repository.get(session, job_id)
    if job is None:
        raise ProblemError(ProblemCode.NOT_FOUND, "No job has this identifier.")
    return job

"""How a request becomes a job: it, its wake-up message and its idempotency key are one commit.

The message is to be sent because the job's row says so: see `outbox`.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Self

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.db.database import Database
from service.db.identifiers import new_id
from service.http.problems import ProblemCode, ProblemError
from service.jobs import job_counts, lifecycle, planning, repository
from service.jobs.plans import Plan
from service.jobs.records import IdempotencyRecord, JobRecord, JobState
from service.jobs.specs import JobCreate
from service.settings import Settings

# When it is worth trying again, in seconds.
RETRY_AFTER_SECONDS = "30"


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


def accept(
    database: Database,
    body: JobCreate,
    limits: SubmissionLimits,
    submitter: Submitter,
    idempotency_key: str | None,
) -> tuple[JobRecord, bool]:
    """Return the job that a request has made, and whether it is new.

    It is not if the key has made it before, from the same body. Raises `ProblemError` if the key
    has made a job from another body, if what the request names is not there or does not fit, and
    if as many jobs of the submitter as may wait or run do so.
    """
    if idempotency_key is None:
        with database.transaction() as session:
            return store(session, planning.plan(session, body), limits, submitter), True
    body_sha256 = hash_of(body)
    try:
        with database.transaction() as session:
            made = _made_before(session, idempotency_key, body_sha256)
            if made is not None:
                return made, False
            job = store(session, planning.plan(session, body), limits, submitter)
            session.add(
                IdempotencyRecord(key=idempotency_key, job_id=job.id, body_sha256=body_sha256)
            )
        return job, True
    except IntegrityError:
        # Of concurrent submissions under one key one makes the job, the others are handed it.
        with database.snapshot() as session:
            made = _made_before(session, idempotency_key, body_sha256)
        if made is None:
            raise
        return made, False


def store(
    session: Session, plan: Plan, limits: SubmissionLimits, submitter: Submitter
) -> JobRecord:
    """Store the planned job in state `queued`, in the caller's transaction, and return it.

    Raises `ProblemError` if as many jobs of the submitter as may wait or run do so.
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
    session.add(job)
    session.flush()
    job_counts.submitted(session, [job.kind])
    return job


def hash_of(body: JobCreate) -> str:
    """Return a hash of what the client has set, however it was written down."""
    canonical = json.dumps(body.model_dump(mode="json", exclude_unset=True), sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _made_before(session: Session, key: str, body_sha256: str) -> JobRecord | None:
    known = repository.find_by_key(session, key)
    if known is None:
        return None
    if known.body_sha256 != body_sha256:
        raise ProblemError(
            ProblemCode.IDEMPOTENCY_KEY_REUSED,
            f"This Idempotency-Key has already made job {known.job_id} from another body; "
            "use a new key for a new job.",
        )
    return lifecycle.existing(session, known.job_id)


def _refuse_too_many(session: Session, most: int, api_key_id: str | None) -> None:
    if repository.has_unfinished(session, api_key_id, most):
        raise ProblemError(
            ProblemCode.TOO_MANY_JOBS,
            f"{'This service' if api_key_id is None else 'This API key'} already has {most} "
            "unfinished jobs, the maximum (VNCE_MAX_UNFINISHED_JOBS); submit more when some have "
            "ended.",
            headers={"Retry-After": RETRY_AFTER_SECONDS},
        )

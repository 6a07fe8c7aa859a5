"""The lease that one worker holds on a running job.

Every step is a single conditional UPDATE, judged by the database's clock and a token that only
the holder knows. Whoever has lost the token changes nothing: a late finish, a late heartbeat and
a second claim all find no row. Attempts are counted at the claim, so that a job which kills its
worker runs out of them.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import ColumnElement, Update, case, null, select, true, update
from sqlalchemy.orm import Session

from service.db.clock import now
from service.db.identifiers import new_id
from service.http.problems import Problem
from service.jobs import job_counts, job_parts, outbox, tenant_slots
from service.jobs.records import JobRecord, JobState
from service.jobs.specs import JobSpec, spec_of


@dataclass(frozen=True)
class Claim:
    """A job that this process may run, and the token that proves it."""

    job_id: str
    token: str
    attempt: int
    max_attempts: int
    spec: JobSpec
    # Whether its parts have all ended and are now to be put together.
    is_split: bool
    # Pairs of names: what the estimate is to be scored against.
    ground_truth: list[list[str]] | None
    # Whose job it is, and whose will be what comes of it.
    tenant: str
    # The request that submitted it.
    request_id: str | None = None


@dataclass(frozen=True)
class Progress:
    """How far the current attempt has come; `fraction` is in [0, 1] and never falls."""

    stage: str
    fraction: float
    iteration: int
    objective: float | None

    def as_document(self) -> dict[str, Any]:
        """Return it as it is stored: an objective that is no finite number as null.

        A fraction that rounding has carried out of [0, 1] is brought back.
        """
        document = asdict(self) | {"fraction": min(max(self.fraction, 0.0), 1.0)}
        if self.objective is not None and not math.isfinite(self.objective):
            document["objective"] = None
        return document


@dataclass(frozen=True)
class Heartbeat:
    """Whether the lease is still ours, and whether the fit is to stop."""

    owned: bool
    cancel_requested: bool


def claim(
    session: Session, job_id: str, lease_seconds: float, most_running: int | None = None
) -> Claim | None:
    """Take the job if it waits, or if its worker's lease has run out; None if it cannot be had.

    A job that was split into parts can be had when all of them have ended. If workers hold
    `most_running` other jobs of its tenant it waits on, and so does its message: see `tenant_slots`.
    """
    token = new_id("lease")
    has_run_out = (JobRecord.state == JobState.RUNNING) & (JobRecord.lease_expires_at < now())
    has_place = true() if most_running is None else tenant_slots.is_one_free(most_running)
    if most_running is not None:
        tenant_slots.lock(session, job_id)
    taken = session.execute(
        _update(*_is_to_be_run(job_id), job_parts.waits() | has_run_out, has_place)
        .values(
            state=JobState.RUNNING,
            attempt=JobRecord.attempt + 1,
            started_at=now(),
            lease_token=token,
            lease_expires_at=now() + lease_seconds,
            heartbeat_at=now(),
            progress=null(),
            progress_at=None,
        )
        .returning(
            JobRecord.attempt,
            JobRecord.max_attempts,
            JobRecord.kind,
            JobRecord.spec,
            JobRecord.is_split,
            JobRecord.ground_truth,
            JobRecord.request_id,
            JobRecord.tenant,
        )
    ).one_or_none()
    if taken is None:
        if most_running is not None:
            _put_message_back(session, job_id)
        return None
    job_counts.claimed(session, taken.kind)
    return Claim(
        job_id=job_id,
        token=token,
        attempt=taken.attempt,
        max_attempts=taken.max_attempts,
        spec=spec_of(taken.spec),
        is_split=taken.is_split,
        ground_truth=taken.ground_truth,
        request_id=taken.request_id,
        tenant=taken.tenant,
    )


def heartbeat(
    session: Session, job_id: str, token: str, lease_seconds: float, progress: Progress | None
) -> Heartbeat:
    """Renew the lease for `lease_seconds` from now; None leaves the stored progress as it is."""
    changes: dict[str, Any] = {"heartbeat_at": now(), "lease_expires_at": now() + lease_seconds}
    if progress is not None:
        changes |= {"progress": progress.as_document(), "progress_at": now()}
    renewed = session.execute(
        _update(*_is_held(job_id, token))
        .values(**changes)
        # The column, not `IS NOT NULL`: SQLite 3.40 computes that wrongly in a RETURNING clause.
        .returning(JobRecord.cancel_requested_at)
    ).one_or_none()
    if renewed is None:
        return Heartbeat(owned=False, cancel_requested=False)
    return Heartbeat(owned=True, cancel_requested=renewed.cancel_requested_at is not None)


def succeed(session: Session, job_id: str, token: str) -> bool:
    """End the job well; True if its result is now to be stored, in the same transaction.

    False if the lease was lost, or if the job was to be cancelled: then it ends cancelled here,
    since whoever was told so must not meet a result later.
    """
    job_parts.lock(session, [job_id])
    was_cancelled = JobRecord.cancel_requested_at.is_not(None)
    state = case((was_cancelled, JobState.CANCELLED), else_=JobState.SUCCEEDED)
    ended = session.execute(
        _update(*_is_held(job_id, token))
        .values(**_without_lease(), state=state, finished_at=now())
        .returning(JobRecord.state)
    ).scalar_one_or_none()
    if ended is not None:
        job_counts.finished(session, [job_id])
        job_parts.part_ended(session, job_id)
    return ended == JobState.SUCCEEDED


def split(session: Session, job_id: str, token: str, parts: Sequence[JobSpec]) -> bool:
    """Replace the attempt by a job for each part, which any worker may take; False as for others.

    The job keeps running, without a worker, until its parts have ended; splitting it counts as no
    attempt. Nothing is made, and the job ends cancelled, if that was asked for meanwhile.
    """
    was_cancelled = JobRecord.cancel_requested_at.is_not(None)
    divided = session.execute(
        _update(*_is_held(job_id, token))
        .values(
            **_without_lease(),
            state=case((was_cancelled, JobState.CANCELLED), else_=JobState.RUNNING),
            finished_at=case((was_cancelled, now()), else_=None),
            is_split=case((was_cancelled, False), else_=True),
            attempt=JobRecord.attempt - 1,
        )
        .returning(JobRecord.state, JobRecord.max_attempts, JobRecord.tag, JobRecord.request_id)
    ).one_or_none()
    if divided is None:
        return False
    if divided.state == JobState.RUNNING:
        job_parts.add_parts(
            session, job_id, parts, divided.max_attempts, divided.tag, divided.request_id
        )
    else:
        job_counts.finished(session, [job_id])
    return True


def fail(session: Session, job_id: str, token: str, problem: Problem) -> bool:
    """End the job with the reason for its failure; False if the lease was lost."""
    return _end(session, job_id, token, JobState.FAILED, error=problem.model_dump(mode="json"))


def cancel(session: Session, job_id: str, token: str) -> bool:
    """End the job as cancelled; False if the lease was lost."""
    return _end(session, job_id, token, JobState.CANCELLED)


def release(session: Session, job_id: str, token: str) -> bool:
    """Hand the job back unfinished, its attempt not counted; False if the lease was lost.

    It waits for another worker, or ends cancelled if that was asked for meanwhile.
    """
    return _hand_back(session, job_id, token, attempt=JobRecord.attempt - 1)


def retry(session: Session, job_id: str, token: str) -> bool:
    """Hand the job back for another attempt, as `release` does; this one counts."""
    return _hand_back(session, job_id, token)


def _hand_back(session: Session, job_id: str, token: str, **values: Any) -> bool:
    job_parts.lock(session, [job_id])
    was_cancelled = JobRecord.cancel_requested_at.is_not(None)
    state = session.execute(
        _update(*_is_held(job_id, token))
        .values(
            **_without_lease(),
            # A job that was split does not wait in the queue again: its parts have ended.
            state=case(
                (was_cancelled, JobState.CANCELLED),
                (JobRecord.is_split, JobState.RUNNING),
                else_=JobState.QUEUED,
            ),
            finished_at=case((was_cancelled, now()), else_=None),
            progress=null(),
            progress_at=None,
            **values,
        )
        .returning(JobRecord.state)
    ).scalar_one_or_none()
    if state == JobState.CANCELLED:
        job_counts.finished(session, [job_id])
        job_parts.part_ended(session, job_id)
    elif state is not None:
        outbox.wake(session, [job_id])
    return state is not None


def _end(session: Session, job_id: str, token: str, state: JobState, **values: Any) -> bool:
    job_parts.lock(session, [job_id])
    ended = session.execute(
        _update(*_is_held(job_id, token))
        .values(**_without_lease(), state=state, finished_at=now(), **values)
        .returning(JobRecord.id)
    )
    if ended.one_or_none() is None:
        return False
    job_counts.finished(session, [job_id])
    job_parts.part_ended(session, job_id)
    return True


def _update(*conditions: ColumnElement[bool]) -> Update:
    # Sessions here hold no job objects that could go stale, so nothing is synchronised.
    return update(JobRecord).where(*conditions).execution_options(synchronize_session=False)


def _put_message_back(session: Session, job_id: str) -> None:
    """Write the message of a job again that waits, but for a place; one at most is to be sent.

    One that a dispatcher has reserved may be the very one that led here: it is deleted once the
    batch has been sent.
    """
    is_missing = ~tenant_slots.has_unsent_message()
    waiting = select(JobRecord.id).where(*_is_to_be_run(job_id), job_parts.waits(), is_missing)
    if session.scalar(waiting) is not None:
        outbox.put_back(session, job_id)


def _is_to_be_run(job_id: str) -> tuple[ColumnElement[bool], ...]:
    return (
        JobRecord.id == job_id,
        JobRecord.attempt < JobRecord.max_attempts,
        JobRecord.cancel_requested_at.is_(None),
    )


def _is_held(job_id: str, token: str) -> tuple[ColumnElement[bool], ...]:
    return (
        JobRecord.id == job_id,
        JobRecord.state == JobState.RUNNING,
        JobRecord.lease_token == token,
    )


def _without_lease() -> dict[str, Any]:
    return {"lease_token": None, "lease_expires_at": None}

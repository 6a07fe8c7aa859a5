"""The lease that one worker holds on a running job.

Every step is a conditional UPDATE, judged by the database's clock and a token that only
the holder knows. Whoever has lost the token changes nothing: a late finish, a late heartbeat and
a second claim all find no row. Attempts are counted at the claim, so that a job which kills its
worker runs out of them.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, Update, and_, null, true, update
from sqlalchemy.orm import Session

from service.db.clock import now
from service.db.identifiers import new_id
from service.http.problems import Problem
from service.jobs import attempts, job_counts, job_parts, outbox, tenant_slots
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
    `most_running` other jobs of its tenant it waits on, and its message is sent again later: see
    `tenant_slots`.
    """
    token = new_id("lease")
    has_slot = true() if most_running is None else tenant_slots.is_free(most_running)
    if most_running is not None:
        tenant_slots.lock(session, job_id)
    is_mine = _is_to_be_run(job_id) & has_slot
    taken = _take(session, is_mine & job_parts.waits(), token, lease_seconds)
    if taken is None:
        taken = _take(session, is_mine & has_run_out(), token, lease_seconds)
        if taken is not None:  # the reaper will not find it
            job_counts.lost(session, "requeued", 1)
    if taken is None:
        if most_running is not None:
            outbox.delay(session, _is_to_be_run(job_id) & job_parts.waits())
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
        _update(_is_held(job_id, token))
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
    state = attempts.unless_cancelled(JobState.SUCCEEDED)
    return _end(session, job_id, token, state) == JobState.SUCCEEDED


def split(session: Session, job_id: str, token: str, specs: Sequence[JobSpec]) -> bool:
    """Replace the attempt by a part for each spec, which any worker may take; False as for others.

    The job keeps running, without a worker, until its parts have ended; splitting it counts as no
    attempt. Nothing is made, and the job ends cancelled, if that was asked for meanwhile.
    """
    state = _end(
        session,
        job_id,
        token,
        attempts.unless_cancelled(JobState.RUNNING),
        is_split=JobRecord.cancel_requested_at.is_(None),
        attempt=JobRecord.attempt - 1,
    )
    if state == JobState.RUNNING:
        job_parts.add(session, job_id, specs)
    return state is not None


def fail(session: Session, job_id: str, token: str, problem: Problem) -> bool:
    """End the job with the reason for its failure; False if the lease was lost."""
    error = problem.model_dump(mode="json")
    return _end(session, job_id, token, JobState.FAILED, error=error) is not None


def cancel(session: Session, job_id: str, token: str) -> bool:
    """End the job as cancelled; False if the lease was lost."""
    return _end(session, job_id, token, JobState.CANCELLED) is not None


def requeue(session: Session, job_id: str, token: str, *, attempt_counts: bool) -> bool:
    """Hand the job back unfinished; False if the lease was lost.

    It waits for another worker, or ends cancelled if that was asked for meanwhile.
    """
    job_parts.lock(session, [job_id])
    number = JobRecord.attempt if attempt_counts else JobRecord.attempt - 1
    return bool(attempts.requeue(session, _is_held(job_id, token), attempt=number))


def has_run_out() -> ColumnElement[bool]:
    """Return the condition that a job's worker has not renewed its lease in time."""
    return (JobRecord.state == JobState.RUNNING) & (JobRecord.lease_expires_at < now())


def _take(
    session: Session, which: ColumnElement[bool], token: str, lease_seconds: float
) -> Row[Any] | None:
    """Begin an attempt at the job if it is `which`; return what a claim hands over, else None."""
    return session.execute(
        _update(which)
        .values(
            state=JobState.RUNNING,
            send_after=None,
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


def _end(
    session: Session,
    job_id: str,
    token: str,
    state: JobState | ColumnElement[str],
    **values: Any,
) -> JobState | None:
    """End the attempt of whoever holds the token; return the job's state, None if it was lost."""
    job_parts.lock(session, [job_id])
    return attempts.end(session, _is_held(job_id, token), state, **values).get(job_id)


def _update(*conditions: ColumnElement[bool]) -> Update:
    # Sessions here hold no job objects that could go stale, so nothing is synchronised.
    return update(JobRecord).where(*conditions).execution_options(synchronize_session=False)


def _is_to_be_run(job_id: str) -> ColumnElement[bool]:
    return and_(
        JobRecord.id == job_id,
        JobRecord.attempt < JobRecord.max_attempts,
        JobRecord.cancel_requested_at.is_(None),
    )


def _is_held(job_id: str, token: str) -> ColumnElement[bool]:
    return and_(
        JobRecord.id == job_id,
        JobRecord.state == JobState.RUNNING,
        JobRecord.lease_token == token,
    )

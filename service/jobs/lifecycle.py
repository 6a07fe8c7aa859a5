"""What may happen on a client's request to a job that there is, and in which order.

Every function works in the caller's transaction.
"""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from service.http.problems import ProblemCode, ProblemError
from service.jobs import job_parts, removal, repository
from service.jobs import result_removal as results
from service.jobs.records import JobRecord, JobState
from service.jobs.schemas import JobRead, describe


def request_cancellation(session: Session, job_id: str) -> tuple[JobRead, bool]:
    """Cancel a waiting job at once, tell a running one to stop; return it and whether it changed.

    A job in a final state stays as it is.
    """
    changed = repository.request_cancellation(session, job_id)
    return read(session, job_id), changed


def remove(session: Session, job_id: str) -> None:
    """Delete a job in a final state with all that it has left.

    Its parts go with it. Raises `ProblemError` if it waits or runs, or if it is a part itself.
    """
    # Locked before its state is read: a worker that stores a result now is waited for.
    job_parts.lock(session, [job_id])
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
    part_ids = job_parts.lock_parts(session, job_id)
    if len(part_ids) > removal.MOST_AT_ONCE:
        removal.hide(session, job_id)
        return
    for owner in sorted([job_id, *part_ids]):
        results.remove(session, owner)
    repository.remove(session, job_id)


def described(session: Session, jobs: Sequence[JobRecord]) -> list[JobRead]:
    """Return what the API says about jobs."""
    counts = job_parts.part_counts(session, [job.id for job in jobs if job.is_split])
    return [describe(job, counts.get(job.id)) for job in jobs]


def read(session: Session, job_id: str) -> JobRead:
    """Return what the API says about a job; raises `ProblemError` if there is none."""
    [job] = described(session, [existing(session, job_id)])
    return job


def existing(session: Session, job_id: str) -> JobRecord:
    """Return the job; raises `ProblemError` if there is none."""
    job = repository.get(session, job_id)
    if job is None:
        raise ProblemError(ProblemCode.NOT_FOUND, "No job has this identifier.")
    return job

"""How an attempt at a job can end, and how each end is written to the database."""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from sqlalchemy.orm import Session

from service.http.problems import Problem, ProblemCode, problem_document
from service.jobs import leases
from service.jobs.leases import Claim
from service.results import repository
from service.results.outcome import Outcome
from worker.jobs.parts import Split


class StopReason(StrEnum):
    """Why an attempt stopped before its end."""

    CANCEL_REQUESTED = "cancel-requested"
    TIME_LIMIT = "time-limit"
    SHUTDOWN = "shutdown"
    LEASE_LOST = "lease-lost"
    OUT_OF_MEMORY = "out-of-memory"


@dataclass(frozen=True)
class Succeeded:
    """The work was done; a fit may have converged or not."""

    outcome: Outcome


@dataclass(frozen=True)
class SplitIntoParts:
    """The job goes on as several, and its attempt is over."""

    split: Split


@dataclass(frozen=True)
class Failed:
    """The job cannot be done, and why."""

    problem: Problem


@dataclass(frozen=True)
class Stopped:
    """The work was stopped before its end."""

    reason: StopReason


AttemptOutcome = Succeeded | SplitIntoParts | Failed | Stopped


def record(session: Session, claim: Claim, ending: AttemptOutcome) -> bool:
    """Write the end of an attempt, all of it or nothing; False if the lease had been lost.

    A success is also not written, and False returned, if the job was to be cancelled.
    """
    job_id, token = claim.job_id, claim.token
    match ending:
        case Succeeded(outcome):
            if not leases.succeed(session, job_id, token):
                return False
            repository.store(session, job_id, outcome)
            return True
        case SplitIntoParts(split):
            return leases.split(session, job_id, token, split.parts)
        case Failed(problem):
            return leases.fail(session, job_id, token, problem)
        case Stopped(reason):
            return _record_stop(session, claim, reason)
        case _:
            assert_never(ending)


def _record_stop(session: Session, claim: Claim, reason: StopReason) -> bool:
    job_id, token = claim.job_id, claim.token
    match reason:
        case StopReason.CANCEL_REQUESTED:
            return leases.cancel(session, job_id, token)
        case StopReason.TIME_LIMIT:
            return leases.fail(session, job_id, token, _ran_too_long(claim))
        case StopReason.SHUTDOWN:
            return leases.requeue(session, job_id, token, attempt_counts=False)
        case StopReason.LEASE_LOST:
            return False
        case StopReason.OUT_OF_MEMORY:
            # Its process or its machine may have been short of memory for reasons not its own.
            if claim.attempt < claim.max_attempts:
                return leases.requeue(session, job_id, token, attempt_counts=True)
            return leases.fail(session, job_id, token, _out_of_memory(claim))
        case _:
            assert_never(reason)


def in_words(ending: AttemptOutcome) -> str:
    """Return how an attempt ended, for the log."""
    match ending:
        case Succeeded():
            return "succeeded"
        case SplitIntoParts(split):
            return f"split into {len(split.parts)} parts"
        case Failed(problem):
            return f"failed ({problem.code})"
        case Stopped(reason):
            return f"stopped ({reason})"
        case _:
            assert_never(ending)


def problem_of(claim: Claim, code: ProblemCode, detail: str) -> Problem:
    """Return the problem document of a job's failure."""
    return problem_document(code, detail, instance=job_path(claim))


def job_path(claim: Claim) -> str:
    """Return the job's address in the API."""
    return f"/v1/jobs/{claim.job_id}"


def _out_of_memory(claim: Claim) -> Problem:
    return problem_of(
        claim,
        ProblemCode.OUT_OF_MEMORY,
        f"The job needed more memory than its worker may use, in each of {claim.attempt} attempts. "
        "Try fewer variables or rows, or a smaller `noise_ratio`.",
    )


def _ran_too_long(claim: Claim) -> Problem:
    return problem_of(
        claim,
        ProblemCode.TIME_LIMIT,
        "The job reached the time limit of this service. Try fewer variables or rows, a fixed "
        "penalty in place of `auto`, or a smaller `max_iter`.",
    )

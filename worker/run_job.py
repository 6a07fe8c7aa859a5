"""One job from its claim to its end; an ordinary function, which Celery only calls."""

import logging
import os
from collections.abc import Callable
from typing import assert_never

from service import logs
from service.db.database import UNREACHABLE, Database
from service.db.storage_full import is_storage_full
from service.http.problems import Problem, ProblemCode
from service.jobs import leases
from service.jobs.leases import Claim
from service.results.outcome import Outcome
from worker.heartbeat import LeaseKeeper
from worker.jobs import load_job as work
from worker.jobs.failures import FitCancelledError, JobFailedError
from worker.jobs.load_job import Work
from worker.jobs.outcomes import (
    AttemptOutcome,
    Failed,
    SplitIntoParts,
    Stopped,
    StopReason,
    Succeeded,
    in_words,
    job_path,
    problem_of,
    record,
)
from worker.jobs.parts import Split
from worker.processes.retry import retry_while_away
from worker.settings import WorkerSettings

Load = Callable[[Database, Claim, WorkerSettings], Work]

logger = logging.getLogger("worker")


def run_job(
    job_id: str,
    database: Database,
    settings: WorkerSettings,
    *,
    load: Load = work.load,
    is_shutting_down: Callable[[], bool] = lambda: False,
    end_process: Callable[[], None] = lambda: os._exit(1),
) -> None:
    """Claim the job, run it and write its end; return quietly if it cannot be had.

    The message that led here may be old or repeated, and the process may die at any line: what
    was written decides. `end_process` is called when a fit does not stop for a cancel, a time
    limit or a shutdown, and at once when it holds too much memory. Raises the database's error if
    that stays away longer than `settings.finish_seconds`; the lease then runs out and the job goes
    to another worker.
    """
    claim = retry_while_away(lambda: _claim(database, job_id, settings), settings.finish_seconds)
    if claim is None:
        logger.info("job %s: it has ended, is another worker's, or has to wait", job_id)
        return
    with logs.bound(job_id=job_id, attempt=claim.attempt, request_id=claim.request_id):
        logger.info("job %s: attempt %d begins", job_id, claim.attempt)
        with LeaseKeeper(
            database, claim, settings, is_shutting_down=is_shutting_down, end_process=end_process
        ) as keeper:
            ending = _attempt(database, claim, settings, keeper, load)
        _finish(database, claim, settings, ending)


def _claim(database: Database, job_id: str, settings: WorkerSettings) -> Claim | None:
    with database.transaction() as session:
        return leases.claim(session, job_id, settings.lease_seconds, settings.max_running_jobs)


def _attempt(
    database: Database,
    claim: Claim,
    settings: WorkerSettings,
    keeper: LeaseKeeper,
    load: Load,
) -> AttemptOutcome:
    """Do the job's work and say how it ended."""
    try:
        do = retry_while_away(
            lambda: load(database.of(claim.tenant), claim, settings), settings.finish_seconds
        )
        match do(keeper.report):
            case Outcome() as outcome:
                return Succeeded(outcome)
            case Split() as split:
                return SplitIntoParts(split)
            case _ as unknown:
                assert_never(unknown)
    except FitCancelledError:
        assert keeper.stop_reason is not None  # a fit stops only when it is told to
        return Stopped(keeper.stop_reason)
    except JobFailedError as failure:
        return Failed(failure.problem.model_copy(update={"instance": job_path(claim)}))
    except UNREACHABLE:
        raise
    except Exception as error:
        if _is_out_of_memory(error):
            logger.warning("job %s: out of memory: %s", claim.job_id, error)
            return Stopped(StopReason.OUT_OF_MEMORY)
        logger.exception("job %s: attempt %d: internal error", claim.job_id, claim.attempt)
        return Failed(_our_mistake(claim))


def _finish(
    database: Database, claim: Claim, settings: WorkerSettings, ending: AttemptOutcome
) -> None:
    """Write the ending; if it cannot be stored, write that instead."""

    def write(ending: AttemptOutcome) -> bool:
        with database.of(claim.tenant).transaction() as session:
            return record(session, claim, ending)

    try:
        was_ours = retry_while_away(lambda: write(ending), settings.finish_seconds)
    except Exception as error:
        is_full = is_storage_full(error)
        if isinstance(error, UNREACHABLE) and not is_full:
            raise
        logger.exception("job %s: its end cannot be stored", claim.job_id)
        ending = Failed(_no_room(claim) if is_full else _our_mistake(claim))
        was_ours = retry_while_away(lambda: write(ending), settings.finish_seconds)
    kept = "" if was_ours else ", and is discarded: the lease was lost or the job cancelled"
    logger.info("job %s: attempt %d %s%s", claim.job_id, claim.attempt, in_words(ending), kept)


def _is_out_of_memory(error: Exception) -> bool:
    # torch reports a failed allocation on the CPU as a plain RuntimeError.
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
    )


def _no_room(claim: Claim) -> Problem:
    return problem_of(
        claim,
        ProblemCode.STORAGE_FULL,
        "The fit has ended, but the database has no room for its result. Make room, by deleting "
        "old jobs and data sets or on the disk, and submit the job again.",
    )


def _our_mistake(claim: Claim) -> Problem:
    return problem_of(
        claim,
        ProblemCode.INTERNAL,
        f"The worker made a mistake in job {claim.job_id}, attempt {claim.attempt}. The mistake "
        "is ours and has been logged under that id.",
    )

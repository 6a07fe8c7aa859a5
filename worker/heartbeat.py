"""The thread that keeps a running job's lease, stores its progress and hears what to stop for."""

import contextvars
import logging
import threading
import time
from collections.abc import Callable
from typing import Self

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from service.db.database import UNREACHABLE, Database
from service.jobs import checkpoints, leases
from service.jobs.leases import Claim, Progress
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.reports import FitStep
from worker.jobs.outcomes import Stopped, StopReason, record
from worker.jobs.versions import versions
from worker.processes.memory import resident_bytes
from worker.processes.retry import retry_while_away
from worker.settings import WorkerSettings

TICK_SECONDS = 0.1
# Larger ones would burden the database more than a second start burdens a worker.
MOST_CHECKPOINT_BYTES = 64 * 2**20

logger = logging.getLogger("worker")


class LeaseKeeper:
    """Holds a claimed job for the body of a `with` statement.

    The fit calls `report` at each of its steps and stops when that returns True; `stop_reason`
    says why. Torch and BLAS let go of the interpreter, so the thread also runs during long calls.
    A fit that does not stop within the grace period is ended with its process, after the job's
    end was written; one that holds too much memory is ended without grace.

    A heartbeat that the database does not answer is tried again at the next turn, for as long as
    the fit runs: only the database can say that the lease is lost.
    """

    def __init__(
        self,
        database: Database,
        claim: Claim,
        settings: WorkerSettings,
        *,
        is_shutting_down: Callable[[], bool],
        end_process: Callable[[], None],
    ) -> None:
        self.stop_reason: StopReason | None = None
        self._database = database
        self._claim = claim
        self._settings = settings
        self._is_shutting_down = is_shutting_down
        self._end_process = end_process
        self._progress: Progress | None = None
        self._stored_progress: Progress | None = None
        self._checkpoint: bytes | None = None
        self._noted_at = time.monotonic()
        self._checkpoint_seconds = settings.checkpoint_seconds
        self._body_ended = threading.Event()
        # In this thread's context, which names the job in whatever is logged.
        context = contextvars.copy_context()
        name = f"lease of {claim.job_id}"
        self._thread = threading.Thread(target=context.run, args=[self._run], name=name)

    def report(self, step: FitStep) -> bool:
        """Take note of a step of the fit; return whether the fit is to stop."""
        reached = self._progress.fraction if self._progress else 0.0
        self._progress = Progress(
            stage=step.stage,
            fraction=max(step.fraction, reached),
            iteration=step.iteration,
            objective=step.objective,
        )
        stop_reason = self.stop_reason
        is_due = time.monotonic() - self._noted_at >= self._checkpoint_seconds
        if step.checkpoint is not None and (is_due or stop_reason is StopReason.SHUTDOWN):
            self._note_checkpoint(step.checkpoint)
        return stop_reason is not None

    def _note_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Have what the fit has done stored with the next heartbeat.

        Called by the fit's own thread, between whose steps the checkpoint does not change. What has
        grown too large costs the fit less and less: it seldom shrinks again.
        """
        data = checkpoint.dump()
        self._noted_at = time.monotonic()
        usual_seconds = self._settings.checkpoint_seconds
        if len(data) <= MOST_CHECKPOINT_BYTES:
            self._checkpoint, self._checkpoint_seconds = data, usual_seconds
            return
        if self._checkpoint_seconds == usual_seconds:
            logger.warning(
                "job %s: checkpoint of %d bytes exceeds the limit of %d MiB; not stored",
                self._claim.job_id,
                len(data),
                MOST_CHECKPOINT_BYTES // 2**20,
            )
        self._checkpoint_seconds *= 2

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._body_ended.set()
        self._thread.join()
        if self.stop_reason is StopReason.SHUTDOWN and self._checkpoint is not None:
            # The next worker is to lose nothing of a job that is handed over.
            self._beat()

    def _run(self) -> None:
        try:
            self._keep()
        except Exception:
            # Without its keeper a fit knows no limit, and what it comes to is thrown away.
            logger.exception(
                "job %s: lease-renewal thread failed; terminating the process", self._claim.job_id
            )
            self._end_process()

    def _keep(self) -> None:
        started = beaten = time.monotonic()
        stopped: float | None = None
        while not self._body_ended.wait(TICK_SECONDS):
            if time.monotonic() - beaten >= self._pause():
                beaten = time.monotonic()
                self._beat()
            now = time.monotonic()
            self._decide(now - started)
            if self.stop_reason is not None:
                stopped = stopped or now
                eats_memory = self.stop_reason is StopReason.OUT_OF_MEMORY
                if eats_memory or now - stopped > self._settings.cancel_grace_seconds:
                    self._give_up(self.stop_reason)
                    return

    def _pause(self) -> float:
        """Return how long after the last heartbeat the next is due."""
        heartbeat_seconds = self._settings.heartbeat_seconds
        if self._progress is self._stored_progress:
            return heartbeat_seconds
        return min(self._settings.progress_seconds, heartbeat_seconds)

    def _beat(self) -> None:
        progress = self._progress
        news = None if progress is self._stored_progress else progress
        try:
            with self._database.transaction() as session:
                answer = self._renew(session, news)
        except UNREACHABLE as error:
            logger.warning("job %s: no heartbeat: %s", self._claim.job_id, error)
            return
        self._stored_progress = progress
        if not answer.owned:
            self.stop_reason = StopReason.LEASE_LOST
            return
        if answer.cancel_requested:
            self.stop_reason = StopReason.CANCEL_REQUESTED
        if self._checkpoint is not None:
            checkpoint, self._checkpoint = self._checkpoint, None
            self._save(checkpoint)

    def _renew(self, session: Session, news: Progress | None) -> leases.Heartbeat:
        claim, lease_seconds = self._claim, self._settings.lease_seconds
        return leases.heartbeat(session, claim.job_id, claim.token, lease_seconds, news)

    def _save(self, checkpoint: bytes) -> None:
        """Store a checkpoint, if that can be done and the lease is still held.

        Apart from the heartbeat, which needs little room: a full disk costs no lease. What could
        not be stored is let go, since the next will hold more.
        """
        try:
            with self._database.transaction() as session:
                if self._renew(session, None).owned:
                    checkpoints.save(session, self._claim.job_id, versions().vnce, checkpoint)
        except (*UNREACHABLE, DBAPIError) as error:
            logger.warning("job %s: no checkpoint: %s", self._claim.job_id, error)

    def _decide(self, seconds_run: float) -> None:
        if self.stop_reason is not None:
            return
        if self._is_shutting_down():
            self.stop_reason = StopReason.SHUTDOWN
        elif seconds_run > self._settings.job_seconds:
            self.stop_reason = StopReason.TIME_LIMIT
        elif self._holds_too_much():
            self.stop_reason = StopReason.OUT_OF_MEMORY

    def _holds_too_much(self) -> bool:
        limit = self._settings.job_memory_bytes
        held = None if limit is None else resident_bytes()
        return limit is not None and held is not None and held > limit

    def _give_up(self, reason: StopReason) -> None:
        logger.warning("job %s: ending its process (%s)", self._claim.job_id, reason)

        def write_end() -> None:
            with self._database.of(self._claim.tenant).transaction() as session:
                record(session, self._claim, Stopped(reason))

        # What eats memory must not go on while the database is away; its lease then runs out.
        seconds = 0 if reason is StopReason.OUT_OF_MEMORY else self._settings.lease_seconds
        try:
            retry_while_away(write_end, seconds)
        finally:
            self._end_process()

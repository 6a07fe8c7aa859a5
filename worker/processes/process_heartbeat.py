"""The thread by which a worker or dispatcher tells the database that it is there."""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Self

from sqlalchemy.orm import Session

from service.db.database import UNREACHABLE, Database
from service.db.identifiers import new_id
from service.monitoring import heartbeats
from service.monitoring.heartbeats import HEARTBEAT_SECONDS, ProcessIdentity
from service.monitoring.records import ProcessKind
from worker.processes.memory import resident_bytes
from worker.processes.pulse import Pulse

# How often a pulse that is not felt is felt for.
LISTEN_SECONDS = 0.2
# How long an ending process may take to take itself off the list.
LEAVE_SECONDS = 2.0

logger = logging.getLogger("worker")


class ProcessHeartbeat:
    """Renews this process's row from `start` to `stop`, for as long as the pulse is felt.

    Without a pulse the process lives but does not do its work, and is to be missed. Where it cannot
    be told, that is logged and tried again at the next beat.
    """

    def __init__(self, database: Database, kind: ProcessKind, pulse: Pulse) -> None:
        self._database = database
        self._pulse = pulse
        self._identity = ProcessIdentity(
            id=new_id("process"),
            kind=kind,
            host=heartbeats.this_host(),
            pid=os.getpid(),
            version=version("vnce"),
        )
        self._job_id: str | None = None
        self._stopping = threading.Event()
        # A daemon: a database that hangs must not keep a process from ending.
        self._thread = threading.Thread(target=self._run, name="process heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to tell."""
        self._thread.start()

    def stop(self) -> None:
        """Take this process off the list."""
        self._stopping.set()
        self._thread.join(LEAVE_SECONDS)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @contextmanager
    def at_work_on(self, job_id: str) -> Iterator[None]:
        """Name the job at hand for the body, from the next beat on."""
        self._job_id = job_id
        try:
            yield
        finally:
            self._job_id = None

    def _run(self) -> None:
        while True:
            is_alive = self._pulse.is_alive()
            if is_alive:
                self._beat()
            if self._stopping.wait(HEARTBEAT_SECONDS if is_alive else LISTEN_SECONDS):
                break
        self._leave()

    def _beat(self) -> None:
        def write(session: Session) -> None:
            heartbeats.beat(session, self._identity, resident_bytes(), self._job_id)

        self._tell("is there", write)

    def _leave(self) -> None:
        self._tell("ends", lambda session: heartbeats.leave(session, self._identity.id))

    def _tell(self, what: str, write: Callable[[Session], None]) -> None:
        try:
            with self._database.transaction() as session:
                write(session)
        except UNREACHABLE as error:
            logger.warning("not told that this process %s: %s", what, error)
        except Exception:
            # Whatever it was, a thread that ended of it would have a process that works taken for
            # lost; a table that is being migrated is there at the next beat.
            logger.exception("not told that this process %s", what)

"""Who is at work: each process renews its row, and one that stops doing so is lost.

Judged by the database's clock alone. A process that ends as it should takes its row with it;
the row of one that was killed stays for a while, so that an operator can see that it is gone.
"""

import socket
from dataclasses import dataclass

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from service.db.clock import now
from service.monitoring.records import ProcessKind, ProcessRecord

HEARTBEAT_SECONDS = 3.0
# Two heartbeats may be missed, or come late because another holds the database.
LIVE_SECONDS = 9.0
FORGET_SECONDS = 600.0


@dataclass(frozen=True)
class ProcessIdentity:
    """Which process it is; `id` is made anew at each start, host and pid are for people."""

    id: str
    kind: ProcessKind
    host: str
    pid: int
    version: str


@dataclass(frozen=True)
class ProcessStatus:
    """A process as it last told of itself, `age_seconds` ago."""

    identity: ProcessIdentity
    started_at: float
    age_seconds: float
    memory_bytes: int | None
    job_id: str | None

    @property
    def is_live(self) -> bool:
        """Whether it has told of itself lately."""
        return self.age_seconds < LIVE_SECONDS


def this_host() -> str:
    """Return the name of this machine or container, as it stands in the rows of its processes."""
    return socket.gethostname()[:255]


def beat(
    session: Session, identity: ProcessIdentity, memory_bytes: int | None, job_id: str | None
) -> None:
    """Say that the process is there; its first call makes its row."""
    renewed = session.execute(
        update(ProcessRecord)
        .where(ProcessRecord.id == identity.id)
        .values(heartbeat_at=now(), memory_bytes=memory_bytes, job_id=job_id)
        .returning(ProcessRecord.id)
        .execution_options(synchronize_session=False)
    )
    if renewed.one_or_none() is None:
        session.add(
            ProcessRecord(
                id=identity.id,
                kind=identity.kind,
                host=identity.host,
                pid=identity.pid,
                version=identity.version,
                memory_bytes=memory_bytes,
                job_id=job_id,
            )
        )


def leave(session: Session, process_id: str) -> None:
    """Take a process that ends as it should off the list."""
    session.execute(delete(ProcessRecord).where(ProcessRecord.id == process_id))


def forget_lost(session: Session) -> None:
    """Take those off the list that have been lost for so long that nobody looks for them."""
    session.execute(
        delete(ProcessRecord).where(ProcessRecord.heartbeat_at < now() - FORGET_SECONDS)
    )


def processes(session: Session) -> list[ProcessStatus]:
    """Return every process on the list, lost ones too, by kind and then oldest first."""
    rows = session.execute(
        select(ProcessRecord, (now() - ProcessRecord.heartbeat_at).label("age")).order_by(
            ProcessRecord.kind, ProcessRecord.started_at, ProcessRecord.id
        )
    )
    return [
        ProcessStatus(
            identity=ProcessIdentity(
                id=row.id,
                kind=ProcessKind(row.kind),
                host=row.host,
                pid=row.pid,
                version=row.version,
            ),
            started_at=row.started_at,
            age_seconds=max(age, 0.0),
            memory_bytes=row.memory_bytes,
            job_id=row.job_id,
        )
        for row, age in rows
    ]


def num_live(session: Session) -> dict[ProcessKind, int]:
    """Return how many processes of each kind have told of themselves lately."""
    rows = session.execute(
        select(ProcessRecord.kind, func.count())
        .where(ProcessRecord.heartbeat_at > now() - LIVE_SECONDS)
        .group_by(ProcessRecord.kind)
    )
    found = {ProcessKind(kind): count for kind, count in rows}
    return {kind: found.get(kind, 0) for kind in ProcessKind}

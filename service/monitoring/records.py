"""Table of the processes that carry messages and run jobs."""

from enum import StrEnum

from sqlalchemy import BigInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from service.db.clock import now
from service.db.database import Record


class ProcessKind(StrEnum):
    """What a process does."""

    WORKER = "worker"
    DISPATCHER = "dispatcher"


class ProcessRecord(Record):
    """A process that runs jobs one at a time, or that dispatches; it renews its row itself."""

    __tablename__ = "workers"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    host: Mapped[str] = mapped_column(String(255))
    pid: Mapped[int]
    version: Mapped[str] = mapped_column(String(40))
    started_at: Mapped[float] = mapped_column(default=now())
    heartbeat_at: Mapped[float] = mapped_column(default=now())
    # Resident memory; null where the system does not tell.
    memory_bytes: Mapped[int | None] = mapped_column(BigInteger)
    # The job at hand. A hint, and no foreign key: the job's own row is the truth.
    job_id: Mapped[str | None] = mapped_column(String(40))

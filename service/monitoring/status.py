"""The whole service at a glance, for whoever runs it."""

import importlib.metadata
from dataclasses import asdict
from datetime import datetime
from typing import Self

from fastapi import APIRouter
from pydantic import BaseModel, Field

from service.db.clock import as_datetime
from service.http.dependencies import SettingsDep, WholeDatabaseDep
from service.http.scoped_route import MetricsRoute
from service.jobs import queue
from service.jobs.queue import Queue
from service.monitoring import heartbeats, readiness
from service.monitoring.heartbeats import ProcessStatus
from service.monitoring.readiness import DatabaseState, ReadinessRead
from service.monitoring.records import ProcessKind

router = APIRouter(tags=["health"], route_class=MetricsRoute)


class QueueRead(BaseModel):
    """Jobs that have not ended, of every kind, and messages that wait to be sent."""

    queued: int = Field(description="Jobs that wait for a worker.", ge=0)
    running: int = Field(description="Jobs in a worker's hands.", ge=0)
    split: int = Field(description="Jobs that run by way of their parts only.", ge=0)
    oldest_queued_seconds: float = Field(
        description="How long the longest waiting job has waited since it was submitted or last "
        "run, in seconds; 0 if none waits.",
        ge=0,
    )
    expired_leases: int = Field(
        description="Running jobs whose worker no longer renews its lease, not yet seen to.", ge=0
    )
    outbox: int = Field(description="Wake-up messages that wait to be sent.", ge=0)
    oldest_outbox_seconds: float = Field(
        description="Age of the oldest of them, in seconds; 0 if there is none.", ge=0
    )

    @classmethod
    def of(cls, seen: Queue) -> Self:
        """Return what the API says about the queue."""
        return cls(**asdict(seen))


class ProcessRead(BaseModel):
    """A process that runs jobs or dispatches, as it last told of itself."""

    id: str = Field(description="Made anew at each start of a process.")
    kind: ProcessKind = Field(description="What it does.")
    host: str = Field(description="Name of its machine or container.")
    pid: int = Field(description="Its process id there.")
    version: str = Field(description="Version of VNCE.")
    started_at: datetime = Field(description="When it first told of itself, UTC.")
    heartbeat_age_seconds: float = Field(description="How long ago it last did.", ge=0)
    is_live: bool = Field(
        description="Whether that is less than 9 seconds; if not, it is lost, and leaves this "
        "list ten minutes after its last heartbeat."
    )
    memory_bytes: int | None = Field(
        description="Resident memory, bytes; null where the system does not tell.", ge=0
    )
    job_id: str | None = Field(description="The job at hand, or null.")

    @classmethod
    def of(cls, seen: ProcessStatus) -> Self:
        """Return what the API says about a process."""
        return cls(
            **asdict(seen.identity),
            started_at=as_datetime(seen.started_at),
            heartbeat_age_seconds=round(seen.age_seconds, 3),
            is_live=seen.is_live,
            memory_bytes=seen.memory_bytes,
            job_id=seen.job_id,
        )


class StatusRead(BaseModel):
    """The whole service at a glance."""

    version: str = Field(description="Version of the API.")
    readiness: ReadinessRead = Field(description="What `/readyz` says.")
    queue: QueueRead | None = Field(description="Null while the database cannot be asked.")
    processes: list[ProcessRead] | None = Field(
        description="Workers and dispatchers, lost ones too; null while the database cannot be "
        "asked."
    )


@router.get("/v1/status", operation_id="get_status")
def get_status(database: WholeDatabaseDep, settings: SettingsDep) -> StatusRead:
    """Show readiness, the queue and every worker and dispatcher; answers 200 whatever is amiss."""
    version = importlib.metadata.version("vnce")
    ready = readiness.look(database, settings)
    if ready.database is not DatabaseState.CURRENT:
        return StatusRead(version=version, readiness=ready, queue=None, processes=None)
    with database.snapshot() as session:
        waiting = queue.look(session, settings.max_running_jobs)
        seen = heartbeats.processes(session)
    return StatusRead(
        version=version,
        readiness=ready,
        queue=QueueRead.of(waiting),
        processes=[ProcessRead.of(process) for process in seen],
    )

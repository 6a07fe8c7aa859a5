"""Tables of jobs, their checkpoints and their idempotency keys."""

from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, LargeBinary, String, false, text
from sqlalchemy.orm import Mapped, mapped_column

from service.db.clock import now
from service.db.database import Record
from service.db.tenancy import OwnedRecord
from service.db.tenant_names import MAX_LENGTH


class JobState(StrEnum):
    """Where a job is in its life; the last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        """Whether the state is final."""
        return self in FINAL


UNFINISHED = (JobState.QUEUED, JobState.RUNNING)
FINAL = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


class JobRecord(OwnedRecord, Record):
    """A job. This row is the truth about it; messages and processes are hints."""

    __tablename__ = "jobs"
    __table_args__ = (
        Index(None, "tenant", "created_at", "id"),
        Index(None, "state", "lease_expires_at"),
        # Holds all that the limit of unfinished jobs asks for, at every submission.
        Index(None, "tenant", "api_key_id", "state", "parent_id"),
        # The outbox: it holds none but jobs whose message is to be sent.
        Index(
            None,
            "woken_at",
            "id",
            postgresql_where=text("send_after IS NOT NULL"),
            sqlite_where=text("send_after IS NOT NULL"),
        ),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    state: Mapped[str] = mapped_column(String(16), default=JobState.QUEUED)
    # The request with every choice made: `specs.JobSpec`.
    spec: Mapped[dict[str, Any]] = mapped_column(JSON)
    # The job that this one is a part of; it waits until all its parts have ended.
    # Not declared as a foreign key, which SQLite cannot add to a table that has rows.
    parent_id: Mapped[str | None] = mapped_column(String(40), index=True)
    # Whether it has been split into parts: then its next claim is to put them together.
    is_split: Mapped[bool] = mapped_column(default=False, server_default=false())
    dataset_id: Mapped[str | None] = mapped_column(ForeignKey("datasets.id"), index=True)
    # What the estimate is to be scored against: the data set's graph when the job was submitted.
    ground_truth: Mapped[list[list[str]] | None] = mapped_column(JSON(none_as_null=True))
    tag: Mapped[str | None] = mapped_column(index=True)
    # The X-Request-ID of its submission: what the worker logs about it names the request.
    request_id: Mapped[str | None] = mapped_column(String(64))
    # The key that it was submitted with, of which some number of jobs may be unfinished.
    api_key_id: Mapped[str | None] = mapped_column(String(40))

    created_at: Mapped[float] = mapped_column(default=now())
    # When it last began to wait for a worker. Messages are sent in this order.
    woken_at: Mapped[float] = mapped_column(default=now())
    # From when on its wake-up message is to be sent; null once the broker has it, and where none is
    # wanted. Ahead of time while a dispatcher sends it, and after a worker has refused it.
    send_after: Mapped[float | None] = mapped_column(default=now())
    # When the broker took the message for which it waits; null while that is yet to be sent.
    sent_at: Mapped[float | None]
    # When the latest attempt began.
    started_at: Mapped[float | None]
    finished_at: Mapped[float | None]
    cancel_requested_at: Mapped[float | None]

    attempt: Mapped[int] = mapped_column(default=0)
    max_attempts: Mapped[int]
    lease_token: Mapped[str | None] = mapped_column(String(40))
    lease_expires_at: Mapped[float | None]
    heartbeat_at: Mapped[float | None]

    # {stage, fraction, iteration, objective} of the current attempt: `leases.Progress`.
    progress: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    progress_at: Mapped[float | None]
    # Why it failed, as a problem document.
    error: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class CheckpointRecord(Record):
    """What an unfinished fit has done so far: bytes of the engine's."""

    __tablename__ = "checkpoints"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    # Of the code that wrote it; another version's may mean something else.
    version: Mapped[str] = mapped_column(String(64))
    saved_at: Mapped[float]
    data: Mapped[bytes] = mapped_column(LargeBinary)


class IdempotencyRecord(OwnedRecord, Record):
    """The job that a client's `Idempotency-Key` has made."""

    __tablename__ = "idempotency_keys"

    tenant: Mapped[str] = mapped_column(String(MAX_LENGTH), primary_key=True)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    body_sha256: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[float] = mapped_column(default=now())

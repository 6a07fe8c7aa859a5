"""What the API says about jobs."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from service.db.clock import as_datetime
from service.http.problems import Problem
from service.http.root_path import address_of
from service.jobs.job_parts import PartCounts
from service.jobs.records import JobRecord, JobState
from service.jobs.specs import JobSpec, spec_of
from service.jobs.vocabulary import JobKind


class ReadModel(BaseModel):
    """Base of every answer; no number in it is NaN or infinite."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class ProgressRead(ReadModel):
    """How far the current attempt has come."""

    stage: str = Field(description="What is being done, such as `select` or `fit`.")
    fraction: float = Field(
        ge=0, le=1, description="Share of the work done; it falls only when a new attempt begins."
    )
    iteration: int = Field(ge=0, description="Iterations made in this stage.")
    objective: float | None = Field(description="Latest objective per row; null if not finite.")
    updated_at: datetime = Field(description="When this was reported, UTC.")


class JobLinks(ReadModel):
    """Where to go from here."""

    job: str = Field(description="This job.")
    events: str = Field(description="Its changes as server-sent events.")
    cancellation: str = Field(description="PUT here to cancel it.")
    dataset: str | None = Field(description="The data set it reads; null if it reads none.")
    parent: str | None = Field(description="The job that it is a part of; null for most.")
    parts: str | None = Field(description="Its parts; null if it was not split.")
    result: str | None = Field(description="Its result; null until it has succeeded.")


class PartsRead(ReadModel):
    """The parts that a job was split into, each a job of its own."""

    n_total: int = Field(ge=1, description="All parts.")
    n_queued: int = Field(ge=0, description="Parts that wait for a worker.")
    n_running: int = Field(ge=0, description="Parts that are being worked on.")
    n_succeeded: int = Field(ge=0, description="Parts that have a result.")
    n_failed: int = Field(ge=0, description="Parts that failed.")
    n_cancelled: int = Field(ge=0, description="Parts that were cancelled.")


class JobRead(ReadModel):
    """A job as it stands."""

    id: str = Field(description="Identifier of the job.")
    kind: JobKind = Field(description="The job's kind.")
    state: JobState = Field(description="Where it is in its life.")
    spec: JobSpec = Field(description="What it does, with every choice made.")
    created_at: datetime = Field(description="When it was accepted, UTC.")
    started_at: datetime | None = Field(description="When its latest attempt began, UTC.")
    finished_at: datetime | None = Field(description="When it reached a final state, UTC.")
    cancel_requested_at: datetime | None = Field(
        description="When cancellation was requested, UTC."
    )
    attempt: int = Field(ge=0, description="Attempts begun; 0 while none was.")
    max_attempts: int = Field(ge=1, description="Attempts before it fails with `worker-lost`.")
    heartbeat_at: datetime | None = Field(
        description="When a worker was last heard of, UTC: tells slow from dead."
    )
    progress: ProgressRead | None = Field(description="Null before the first report.")
    parts: PartsRead | None = Field(
        description="Its parts, by their state; null if it was not split."
    )
    error: Problem | None = Field(description="Why it failed; null unless it did.")
    links: JobLinks = Field(description="Where to go from here.")


class JobPage(ReadModel):
    """Jobs, newest first."""

    items: list[JobRead] = Field(description="The jobs of this page.")
    next_cursor: str | None = Field(description="Pass as `cursor` for the next page; null: last.")


class PlanWarning(ReadModel):
    """Something to know before the job runs."""

    code: str = Field(description="Stable name, such as `missing-cells`.")
    message: str = Field(description="What it is and what to do.")
    columns: list[str] = Field(description="Variables concerned; may be empty.")


class JobSize(ReadModel):
    """How large the computation would be."""

    n_rows: int = Field(ge=0, description="Rows of the table.")
    n_variables: int = Field(ge=0, description="Variables.")
    n_parameters: int = Field(ge=0, description="Free numbers of the model: those in K, h and c.")
    n_noise_rows: int = Field(
        ge=0,
        description="Noise rows: rows × `noise_ratio`; short tables and final iterations use more, "
        "dropped rows none.",
    )
    noise_bytes: int = Field(ge=0, description="Memory that the noise takes, in bytes.")


class EstimationPlan(ReadModel):
    """What an estimation would work on."""

    dataset_name: str = Field(description="Name of the data set.")
    n_missing: int = Field(ge=0, description="Missing cells of the variables used.")
    n_censored: int = Field(ge=0, description="Their censored or unknown cells.")
    has_ground_truth: bool = Field(description="Whether the result will be scored.")
    size: JobSize = Field(description="How large the computation would be.")


class JobPlan(ReadModel):
    """What a request would run; nothing was stored."""

    spec: JobSpec = Field(
        description="The request with every choice made; a seed of null is drawn anew when it is "
        "submitted."
    )
    estimation: EstimationPlan | None = Field(
        description="What it would work on; null for other kinds of job."
    )
    warnings: list[PlanWarning] = Field(description="What to know before; may be empty.")


def describe(job: JobRecord, parts: PartCounts | None) -> JobRead:
    """Return what the API says about `job` and its parts, if it has any."""
    address = address_of(f"/v1/jobs/{job.id}")
    has_result = job.state == JobState.SUCCEEDED
    return JobRead(
        id=job.id,
        kind=JobKind(job.kind),
        state=JobState(job.state),
        spec=spec_of(job.spec),
        created_at=as_datetime(job.created_at),
        started_at=_as_datetime(job.started_at),
        finished_at=_as_datetime(job.finished_at),
        cancel_requested_at=_as_datetime(job.cancel_requested_at),
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        heartbeat_at=_as_datetime(job.heartbeat_at),
        progress=_progress(job),
        parts=None if parts is None else _parts(parts),
        error=None if job.error is None else Problem.model_validate(job.error),
        links=JobLinks(
            job=address,
            events=f"{address}/events",
            cancellation=f"{address}/cancellation",
            dataset=job.dataset_id and address_of(f"/v1/datasets/{job.dataset_id}"),
            parent=job.parent_id and address_of(f"/v1/jobs/{job.parent_id}"),
            parts=None if parts is None else address_of(f"/v1/jobs?parent_id={job.id}"),
            result=f"{address}/result" if has_result else None,
        ),
    )


def _as_datetime(seconds: float | None) -> datetime | None:
    return None if seconds is None else as_datetime(seconds)


def _parts(counts: PartCounts) -> PartsRead:
    by_state = {f"n_{state}": counts.by_state.get(state, 0) for state in JobState}
    return PartsRead(n_total=counts.total, **by_state)


def _progress(job: JobRecord) -> ProgressRead | None:
    if job.progress is None or job.progress_at is None:
        return None
    progress = ProgressRead(**job.progress, updated_at=as_datetime(job.progress_at))
    # The worker's last report came before it had stored the result.
    is_done = job.state == JobState.SUCCEEDED
    return progress.model_copy(update={"fraction": 1.0}) if is_done else progress

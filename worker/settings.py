"""What an operator may set on the processes that run jobs."""

from pydantic import Field

from service.settings import Settings


class WorkerSettings(Settings):
    """The API's settings and those of workers and dispatcher, from `VNCE_*` variables."""

    concurrency: int = Field(
        default=1, ge=1, description="Jobs that one worker runs at a time, each in its process."
    )
    threads_per_process: int = Field(
        default=1,
        ge=1,
        description="BLAS and torch threads of a process. More threads than cores are slower.",
    )
    job_seconds: float = Field(
        default=6 * 3600, gt=0, description="How long one attempt may run before the job fails."
    )
    job_memory_bytes: int | None = Field(
        default=None,
        gt=0,
        description="Resident memory that the process of a job may reach, its libraries (about "
        "400 MB) included, before the attempt is ended; watched on Linux only.",
    )
    checkpoint_seconds: float = Field(
        default=20.0,
        gt=0,
        description="How often what a fit has done is stored for a later attempt to go on from.",
    )
    progress_seconds: float = Field(
        default=0.5, gt=0, description="How often a running job's progress is stored, at most."
    )
    finish_seconds: float = Field(
        default=300.0,
        gt=0,
        description="How long a worker keeps trying to reach a database that is away.",
    )
    outbox_seconds: float = Field(
        default=0.2, gt=0, description="How often the dispatcher looks for messages to send."
    )
    resend_seconds: float = Field(
        default=60.0,
        gt=0,
        description="How long a job waits before its message may be taken for lost.",
    )

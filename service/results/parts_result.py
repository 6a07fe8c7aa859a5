"""What finished jobs in parts, and their parts, say of the work, whatever it was."""

from pydantic import Field

from service.http.problems import Problem
from service.results.base import ResultModel
from service.results.schemas import VersionsRead


class PartFailureRead(ResultModel):
    """A part that has no result."""

    job_id: str = Field(description="The part's job.")
    label: str = Field(description="What it was to compute.")
    error: Problem | None = Field(description="Why it failed; null if it was cancelled.")


class SplitResult(ResultModel):
    """What a job says of its parts."""

    n_parts: int = Field(ge=0, description="Parts that it was split into.")
    n_succeeded: int = Field(ge=0, description="Parts that the result is made of.")
    failures: list[PartFailureRead] = Field(description="Parts that have no result; may be empty.")
    n_workers: int = Field(ge=0, description="Worker processes that took part.")
    part_seconds: float = Field(ge=0, description="CPU time of all parts together, in seconds.")


class PartResult(ResultModel):
    """What a part says of itself."""

    label: str = Field(description="What it computed.")
    seconds: float = Field(ge=0, description="CPU time, in seconds.")
    worker: str = Field(description="The process that ran it: host name and process id.")
    versions: VersionsRead = Field(description="What computed it.")

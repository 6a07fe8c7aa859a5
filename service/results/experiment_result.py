"""What a finished experiment says, and what each of its parts does."""

from typing import Literal

from pydantic import Field

from service.http.problems import Problem
from service.jobs.specs.experiment import ExperimentChoice
from service.jobs.vocabulary import ExperimentScale
from service.results.schemas import ResultModel, VersionsRead

Scalar = str | int | float | None


class SummaryTableRead(ResultModel):
    """A table of an experiment's summary."""

    name: str = Field(description="Short name; its CSV is the file `tables/NAME.csv`.")
    title: str = Field(description="What it shows.")
    columns: list[str] = Field(description="Names of the columns.")
    rows: list[list[Scalar]] = Field(description="Its rows; null where a number is undefined.")


class PartFailureRead(ResultModel):
    """A part that has no result."""

    job_id: str = Field(description="The part's job.")
    label: str = Field(description="What it was to compute.")
    error: Problem | None = Field(description="Why it failed; null if it was cancelled.")


class ExperimentResult(ResultModel):
    """The document of one experiment."""

    kind: Literal["experiment"] = Field(description="The job's kind.")
    experiment: ExperimentChoice = Field(description="Which, and what was changed about it.")
    scale: ExperimentScale = Field(description="How large it was.")
    tables: list[SummaryTableRead] = Field(description="What came out.")
    n_parts: int = Field(ge=1, description="Parts that it was split into.")
    n_succeeded: int = Field(ge=0, description="Parts that the tables are made of.")
    failures: list[PartFailureRead] = Field(description="Parts that have no result; may be empty.")
    n_workers: int = Field(ge=1, description="Worker processes that took part.")
    part_seconds: float = Field(ge=0, description="CPU time of all parts together, in seconds.")
    seed: int = Field(ge=0, description="Seed of every random draw.")
    versions: VersionsRead = Field(description="What computed it.")


class ExperimentPartResult(ResultModel):
    """The document of one part of an experiment; its rows are the file `rows.json`."""

    kind: Literal["experiment-part"] = Field(description="The job's kind.")
    label: str = Field(description="What it computed.")
    n_rows: int = Field(ge=0, description="Rows of data that it has added.")
    seconds: float = Field(ge=0, description="CPU time, in seconds.")
    worker: str = Field(description="The process that ran it: host name and process id.")
    versions: VersionsRead = Field(description="What computed it.")

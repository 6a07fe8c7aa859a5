"""What a finished experiment says, and what each of its parts does."""

from typing import Literal

from pydantic import Field

from service.jobs.specs.experiment import ExperimentChoice
from service.jobs.vocabulary import ExperimentScale
from service.results.base import ResultModel
from service.results.parts_result import PartResult, SplitResult
from service.results.schemas import VersionsRead

Scalar = str | int | float | None


class SummaryTableRead(ResultModel):
    """A table of an experiment's summary."""

    name: str = Field(description="Short name; its CSV is the file `tables/NAME.csv`.")
    title: str = Field(description="What it shows.")
    columns: list[str] = Field(description="Names of the columns.")
    rows: list[list[Scalar]] = Field(description="Its rows; null where a number is undefined.")


class ExperimentResult(SplitResult):
    """The document of one experiment."""

    kind: Literal["experiment"] = Field(description="The job's kind.")
    experiment: ExperimentChoice = Field(description="Which, and what was changed about it.")
    scale: ExperimentScale = Field(description="How large it was.")
    tables: list[SummaryTableRead] = Field(description="What came out.")
    seed: int = Field(ge=0, description="Seed of every random draw.")
    versions: VersionsRead = Field(description="What computed it.")


class ExperimentPartResult(PartResult):
    """The document of one part of an experiment; its rows are the file `rows.json`."""

    kind: Literal["experiment-part"] = Field(description="The job's kind.")
    n_rows: int = Field(ge=0, description="Rows of data that it has added.")

"""What a finished comparison says, and what each of its parts does."""

from typing import Literal

from pydantic import Field

from service.results.base import ResultModel
from service.results.choices import AppliedTransforms
from service.results.parts_result import PartResult, SplitResult
from service.results.schemas import DatasetIdentity, NumClusters, ResultWarning, VersionsRead
from service.results.vocabulary import EdgeRule, Verdict


class ComparedFitRead(ResultModel):
    """The fit of one specification to all rows, and those without each fold."""

    converged: bool = Field(description="Whether the fit to all rows has converged.")
    transform: AppliedTransforms = Field(description="The transform of all variables, or of each.")
    decided_by: EdgeRule = Field(description="What makes a pair an edge.")
    n_selected: int = Field(ge=0, description="Pairs that it selects.")
    n_unconverged_folds: int = Field(ge=0, description="Folds whose fit ran out of iterations.")
    monte_carlo_error: float | None = Field(
        ge=0,
        description="Standard error of the mean log density over draws of missing cells and of the "
        "model's constant, at most; 0 where these are exact, null without a density.",
    )
    warnings: list[ResultWarning] = Field(description="What a reader must know; may be empty.")


class ComparedModelRead(ResultModel):
    """One of the specifications; null are numbers that it does not have, and `reason` says why."""

    name: str = Field(description="Its name.")
    position: int = Field(ge=0, description="Its place in the job's `specifications`, from 0.")
    log_density: float | None = Field(
        description="Mean log density of the observed cells of rows that were held out, nats per "
        "row, in the data's own units, whatever the transform."
    )
    standard_error: float | None = Field(ge=0, description="Its standard error, over rows.")
    behind: float | None = Field(
        ge=0, description="Log density of the best model minus this one's; 0 for the best."
    )
    behind_standard_error: float | None = Field(
        ge=0, description="Standard error of `behind`, from the differences row by row."
    )
    reason: str | None = Field(
        description="Why there is no density, such as a K that is not positive definite, or no fit "
        "at all; null where there is one."
    )
    fit: ComparedFitRead | None = Field(description="Its fits; null where it failed.")


class ComparedEdgeRead(ResultModel):
    """A pair in one model."""

    model: str = Field(description="The model's name.")
    selected: bool = Field(description="Whether the model selects it.")
    partial_correlation: float | None = Field(
        ge=-1,
        le=1,
        description="As estimated, with the penalty; null where K is not positive definite.",
    )
    debiased: float | None = Field(
        ge=-1,
        le=1,
        description="Without the penalty's bias. Null, as the rest, where it is not known.",
    )
    lower: float | None = Field(
        ge=-1, le=1, description="Lower end of its 95 % confidence interval."
    )
    upper: float | None = Field(
        ge=-1, le=1, description="Upper end of its 95 % confidence interval."
    )
    verdict: Verdict | None = Field(description="`present`, `absent` or `undecided`.")


class ComparedPairRead(ResultModel):
    """A pair of variables that some model selects."""

    source: str = Field(description="The variable that comes first in the table.")
    target: str = Field(description="The other one.")
    n_selected: int = Field(ge=1, description="Models that select it.")
    edges: list[ComparedEdgeRead] = Field(
        description="The pair in each model that has a network, in the order of `models`."
    )


class ComparisonResult(SplitResult):
    """The document of one comparison."""

    kind: Literal["comparison"] = Field(description="The job's kind.")
    dataset: DatasetIdentity = Field(description="What was read.")
    names: list[str] = Field(description="Variables.")
    n_rows: int = Field(ge=0, description="Rows with something observed; each is held out once.")
    n_clusters: NumClusters = None
    n_folds: int = Field(ge=2, description="Cross-validation folds, the same for all models.")
    models: list[ComparedModelRead] = Field(
        description="The specifications, the best first, those without a density next, those that "
        "failed last."
    )
    n_pairs: int = Field(ge=1, description="All pairs of variables.")
    agreed: list[ComparedPairRead] = Field(
        description="Pairs selected by every model that has partial correlations, strongest first."
    )
    disputed: list[ComparedPairRead] = Field(
        description="Pairs selected by some of these models and not by others, the strongest first."
    )
    seed: int = Field(ge=0, description="Seed of every random draw.")
    versions: VersionsRead = Field(description="What computed it.")


class ComparisonPartResult(PartResult):
    """The document of one specification; its files are `held-out.npy` and `pairs.parquet`."""

    kind: Literal["comparison-part"] = Field(description="The job's kind.")
    reason: str | None = Field(description="Why there is no density; null where there is one.")
    fit: ComparedFitRead = Field(description="Its fits.")

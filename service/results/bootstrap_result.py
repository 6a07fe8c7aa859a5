"""What a finished bootstrap says, and what each of its parts does."""

from typing import Literal

from pydantic import Field

from service.jobs.vocabulary import LinearChoice, PenaltyKind
from service.results.base import ResultModel
from service.results.choices import AppliedTransforms
from service.results.parts_result import PartResult, SplitResult
from service.results.schemas import NumClusters, VersionsRead


class SpreadRead(ResultModel):
    """How a number varies over resamples; null where fewer than half of them have it."""

    mean: float | None = Field(description="Mean.")
    standard_deviation: float | None = Field(ge=0, description="Standard deviation.")
    lower: float | None = Field(description="Lower end of the 95 % percentile interval.")
    upper: float | None = Field(description="Upper end of the 95 % percentile interval.")
    n: int = Field(ge=0, description="Resamples that have it.")


class BootstrapEdgeRead(ResultModel):
    """A pair of variables over resamples."""

    source: str = Field(description="The variable that comes first in the table.")
    target: str = Field(description="The other one.")
    selected: bool = Field(description="Whether the estimation selects it.")
    inclusion: float | None = Field(
        ge=0,
        le=1,
        description="Share of resamples that select it, of those with partial correlations.",
    )
    partial_correlation: SpreadRead = Field(
        description="As estimated, shrunk towards zero by a penalty: their spread, and no "
        "confidence interval."
    )
    debiased: SpreadRead = Field(
        description="Without the penalty's bias: a confidence interval. Of `vnce`, and "
        "`nce` where no cell was filled; `n` is 0 of others."
    )


class BootstrapVariableRead(ResultModel):
    """A variable over resamples."""

    name: str = Field(description="Its name.")
    strength: SpreadRead = Field(
        description="Strength centrality: the sum of the sizes of its selected pairs' partial "
        "correlations, without bias where that is known."
    )


class StatisticStabilityRead(ResultModel):
    """How a statistic of subsets is correlated with that of all rows, by the share left out."""

    coefficient: float | None = Field(
        ge=0,
        le=1,
        description="Correlation stability coefficient: the largest share of the rows left out at "
        "which, as at all smaller ones, 95 % of the subsets have a correlation of at least .7; 0 "
        "where there is none. Null "
        "where all rows together have no statistic, or the same for all variables.",
    )
    mean: list[float | None] = Field(
        description="Mean correlation of each share's subsets; 0 of one in which all are equal."
    )
    lower: list[float | None] = Field(description="Their fifth percentile.")
    agreeing: list[float | None] = Field(
        description="Share of the subsets whose correlation is at least .7; one without a network "
        "has none."
    )


class CorrelationStabilityRead(ResultModel):
    """How many rows the network can spare (Epskamp, Borsboom and Fried, 2018)."""

    dropped: list[float] = Field(description="Shares of the rows that are left out, ascending.")
    n_requested: list[int] = Field(description="Subsets asked for of each.")
    n_ok: list[int] = Field(description="Those that have a network.")
    failures: dict[str, int] = Field(
        description="How many subsets have none, by cause, as `resample_failures`."
    )
    edges: StatisticStabilityRead = Field(
        description="Of all pairs' partial correlations, without bias where that is known."
    )
    strength: StatisticStabilityRead = Field(
        description="Of the variables' sums of their sizes over selected pairs."
    )
    expected_influence: StatisticStabilityRead = Field(
        description="Of the variables' sums of all of them, with their signs."
    )


class HeldChoicesRead(ResultModel):
    """What the estimation chose and no fit to other rows chooses again."""

    transform: AppliedTransforms = Field(description="The transform of all variables, or of each.")
    linear: LinearChoice = Field(description="The linear term, `free` or `zero`.")
    penalty_kind: PenaltyKind | None = Field(description="Shape of the penalty.")
    penalty: float | None = Field(description="Its strength; null without one.")
    relaxation: float | None = Field(description="Of the penalty `adaptive`.")


class BootstrapResult(SplitResult):
    """The document of one bootstrap."""

    kind: Literal["bootstrap"] = Field(description="The job's kind.")
    bootstrapped_job_id: str = Field(description="The estimation.")
    n_clusters: NumClusters = None
    n_requested: int = Field(ge=2, description="Resamples asked for.")
    n_ok: int = Field(ge=0, description="Resamples that have a network.")
    n_failed: int = Field(ge=0, description="Resamples that have none.")
    resample_failures: dict[str, int] = Field(
        description="How many have none, by cause: how the fit ended, why it refused the table, or "
        "`part-failed` of those of parts without a result."
    )
    reason: str | None = Field(
        description="Why no shares and intervals are given; null where they are."
    )
    held: HeldChoicesRead = Field(description="What is the same in all resamples.")
    rank_correlation: float | None = Field(
        ge=-1,
        le=1,
        description="Spearman's correlation of the sizes of all partial correlations, without bias "
        "where that is known, with the estimation's, mean over resamples.",
    )
    n_selected: int = Field(ge=0, description="Pairs that the estimation selects.")
    top_kept: float | None = Field(
        ge=0,
        le=1,
        description="Mean share of the estimation's `n_selected` strongest pairs that are among a "
        "resample's as many strongest; null where none is selected.",
    )
    strength_rank_correlation: float | None = Field(
        ge=-1, le=1, description="As `rank_correlation`, of the variables' strengths."
    )
    edges: list[BootstrapEdgeRead] = Field(
        description="All pairs, the estimation's largest |scaled interaction| first."
    )
    variables: list[BootstrapVariableRead] = Field(description="All variables, in their order.")
    stability: CorrelationStabilityRead | None = Field(
        description="What subsets of the rows say; null where none were asked for."
    )
    seed: int = Field(ge=0, description="Seed of every random draw.")
    versions: VersionsRead = Field(description="What computed it.")


class BootstrapPartResult(PartResult):
    """The document of some of a bootstrap's resamples; they are the file `resamples.parquet`."""

    kind: Literal["bootstrap-part"] = Field(description="The job's kind.")
    n_failed: int = Field(ge=0, description="Resamples of the part that have no network.")

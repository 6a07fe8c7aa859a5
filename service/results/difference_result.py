"""What a finished difference of two networks says, and what each of its parts does."""

from typing import Literal

from pydantic import Field

from service.results.base import ResultModel
from service.results.bootstrap_result import HeldChoicesRead
from service.results.parts_result import PartResult, SplitResult
from service.results.schemas import NumClusters, VersionsRead


class DifferenceNetworkRead(ResultModel):
    """One of the two networks."""

    label: str = Field(description="Its data set's name, or its group, such as `sex = 0`.")
    job_id: str = Field(description="The estimation; for groups the one of all rows.")
    n_rows: int = Field(ge=0, description="Rows it is fitted to.")
    n_clusters: NumClusters = None


class DifferenceEdgeRead(ResultModel):
    """A pair of variables in both networks; null where it has no standard error in one of them."""

    source: str = Field(description="The variable that comes first in the first network's table.")
    target: str = Field(description="The other one.")
    first: float | None = Field(
        ge=-1,
        le=1,
        description="Partial correlation in the first network, without the penalty's bias.",
    )
    second: float | None = Field(ge=-1, le=1, description="That in the second.")
    difference: float | None = Field(ge=-2, le=2, description="`first` minus `second`.")
    standard_error: float | None = Field(ge=0, description="Standard error of the difference.")
    lower: float | None = Field(
        ge=-2, le=2, description="Lower end of its 95 % confidence interval, by Student's t."
    )
    upper: float | None = Field(ge=-2, le=2, description="Its upper end.")
    z: float | None = Field(description="The difference divided by its standard error.")
    p_value: float | None = Field(
        ge=0,
        le=1,
        description="Two-sided p-value of equal partial correlations, by Student's t with degrees "
        "of freedom by Welch and Satterthwaite.",
    )
    q_value: float | None = Field(
        ge=0,
        le=1,
        description="Least false discovery rate, by Benjamini and Hochberg, at which the pair is "
        "found to differ.",
    )
    differs: bool = Field(description="Whether its q-value is at most `fdr`.")


class GlobalTestRead(ResultModel):
    """Whether the networks differ at all, by one statistic."""

    statistic: float | None = Field(ge=0, description="Its value; null where no pair has a z.")
    p_value: float | None = Field(
        gt=0,
        le=1,
        description="(1 + b) / (1 + B) where b of B permutations have a statistic at least as "
        "large; null without permutations, or as `reason` says.",
    )


class DifferenceResult(SplitResult):
    """The document of one difference."""

    kind: Literal["difference"] = Field(description="The job's kind.")
    first: DifferenceNetworkRead = Field(description="The first network.")
    second: DifferenceNetworkRead = Field(description="The second one.")
    by: str | None = Field(
        description="Column whose two values are the groups; null for two results."
    )
    n_unlabelled: int = Field(ge=0, description="Rows of neither group, which were left out.")
    held: HeldChoicesRead | None = Field(
        description="What the estimation chose and both groups share; null for two results, as "
        "each has its own."
    )
    n_permutations: int = Field(ge=0, description="Permutations of rows that were asked for.")
    n_ok: int = Field(ge=0, description="Permutations in which both networks have standard errors.")
    n_failed: int = Field(
        ge=0, description="Other permutations, counted in `permutation_failures`."
    )
    permutation_failures: dict[str, int] = Field(
        description="How many failed, by cause: why there are no standard errors, why the fit "
        "refused the table, or `part-failed` of those of parts without a result."
    )
    reason: str | None = Field(
        description="Why the global tests have no p-values; null where they have."
    )
    largest_z: GlobalTestRead = Field(
        description="By the largest |z| of a pair: sensitive to few large differences."
    )
    sum_of_squares: GlobalTestRead = Field(
        description="By the sum of z² over pairs: sensitive to many small ones."
    )
    fdr: float = Field(gt=0, lt=1, description="False discovery rate at which pairs differ.")
    n_differing: int = Field(ge=0, description="Pairs found to differ.")
    edges: list[DifferenceEdgeRead] = Field(description="All pairs, the largest |z| first.")
    seed: int = Field(ge=0, description="Seed of every random draw.")
    versions: VersionsRead = Field(description="What computed it.")


class DifferencePartResult(PartResult):
    """The document of some of a difference's permutations, the file `permutations.parquet`."""

    kind: Literal["difference-part"] = Field(description="The job's kind.")
    n_failed: int = Field(ge=0, description="Permutations of the part that have no networks.")

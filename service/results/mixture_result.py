"""What a finished estimation of the mixture says."""

from typing import Literal

from pydantic import Field

from service.jobs.vocabulary import MixtureForm
from service.results.base import ResultModel
from service.results.schemas import (
    ConvergenceRead,
    DatasetIdentity,
    ResultWarning,
    TimingRead,
    VersionsRead,
)


class EstimateRead(ResultModel):
    """A number that was estimated."""

    value: float = Field(description="The estimate.")
    standard_error: float | None = Field(
        ge=0,
        description="Its standard error, from slopes and curvature of the objective at the "
        "estimate (the sandwich formula); null where the objective has no maximum there.",
    )


class MixtureWeightsRead(ResultModel):
    """Share of each component in the density."""

    known: float = Field(ge=0, le=1, description="Of the component of standard deviation sigma_1.")
    free: float = Field(ge=0, le=1, description="Of the component of standard deviation theta.")


class MixtureStartRead(ResultModel):
    """Where one start has led."""

    theta: float | None = Field(description="theta at its end; null where not finite.")
    log_partition: float | None = Field(
        description="c at its end; null for a normalised mixture and where not finite."
    )
    objective: float | None = Field(description="Objective per value; null where not finite.")
    is_best: bool = Field(description="Whether the objective is within 1e-5 of the best.")


class MixtureNoiseRead(ResultModel):
    """The noise that the data were told from, and how well it serves."""

    sigma: float = Field(gt=0, description="Its standard deviation, in the data's unit.")
    ratio: int = Field(ge=1, description="Noise values per value of data.")
    separated_share: float = Field(
        ge=0, le=1, description="Share of all values whose class is certain."
    )
    confusion: float = Field(
        ge=0,
        description="Mean probability that a value is taken for noise, as a share of what it would "
        "be if noise and data were the same.",
    )
    effective_share: float = Field(
        ge=0, le=1, description="Effective share of the noise: 1 where all of it weighs the same."
    )


class MixtureCountsRead(ResultModel):
    """How much data there was."""

    n_rows: int = Field(ge=0, description="Rows of the table.")
    n_fitted_values: int = Field(ge=0, description="Values that the fit used.")
    n_missing: int = Field(
        ge=0, description="Rows left out, as they have no value; censored ones included."
    )
    n_censored: int = Field(ge=0, description="Censored or unknown cells treated as missing.")


class MixtureResult(ResultModel):
    """The document of one estimation of the mixture of two normals."""

    kind: Literal["mixture"] = Field(description="The result's kind: no network, but a mixture.")
    name: str = Field(description="The variable.")
    form: MixtureForm = Field(description="Whether the mixture is normalised.")
    sigma_1: float = Field(gt=0, description="The known standard deviation.")
    theta: EstimateRead = Field(description="The standard deviation that was unknown.")
    log_partition: EstimateRead | None = Field(
        description="c, the logarithm of the normalising constant; null for a normalised mixture. "
        "Under `mle` it follows from theta."
    )
    weights: MixtureWeightsRead = Field(description="Share of each component.")
    convergence: ConvergenceRead = Field(description="How the fit ended.")
    starts: list[MixtureStartRead] = Field(description="Where every start has led.")
    n_best: int = Field(ge=0, description="Starts that reached the best optimum found.")
    noise: MixtureNoiseRead | None = Field(description="The noise; null under `mle`.")
    warnings: list[ResultWarning] = Field(description="What a reader must know; may be empty.")
    assumption: str = Field(description="What must hold about rows without a value.")
    counts: MixtureCountsRead = Field(description="How much data there was.")
    seed: int = Field(ge=0, description="Seed of every random draw.")
    versions: VersionsRead = Field(description="What computed the result.")
    dataset: DatasetIdentity = Field(description="Which data it was.")
    timing: TimingRead = Field(description="Where the time went.")

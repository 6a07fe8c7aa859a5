"""Estimations: a model, an estimator and the data set that they are fitted to."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.jobs.specs.base import (
    DatasetId,
    RequestModel,
    Seed,
    SeedChoice,
    SpecModel,
    Tag,
    VariableName,
)
from service.jobs.vocabulary import (
    CensoredRule,
    Imputation,
    LinearChoice,
    NoiseDraws,
    PenaltyChoice,
    PenaltyKind,
    Preset,
    Transform,
)

DEFAULT_TOL = 3e-3
# What preset "paper" fixes.
PAPER_NOISE_RATIO = 10
PAPER_NOISE_DRAWS = NoiseDraws.RANDOM


Linear = Annotated[
    LinearChoice,
    Field(
        description="Linear term of the model: `free` estimates it, `zero` leaves it out (the "
        "paper's model), `auto` decides by the held-out objective."
    ),
]
TransformName = Annotated[
    Transform,
    Field(
        description="Applied to every observed cell; estimates are on the transformed scale, "
        "imputations on the data's own."
    ),
]
PenaltyStrength = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Penalty = Annotated[
    PenaltyChoice | PenaltyStrength | None,
    Field(
        description="Strength of the penalty: `auto` chooses it by the held-out objective, a "
        "positive number fixes it (no unit; the same number means the same for 1000 rows), null "
        "fits without one."
    ),
]
PenaltyShape = Annotated[
    PenaltyKind,
    Field(description="`adaptive` shrinks weak interactions more than strong ones; `ridge` all."),
]
PresetName = Annotated[
    Preset,
    Field(
        description="`paper` runs the paper's own recipe, for reference: 10 independent noise rows "
        "per row of data, its own stopping rule in place of `tol`, and, where `auto` is asked for, "
        "no linear term and no penalty."
    ),
]
NoiseRatio = Annotated[
    int,
    Field(strict=True, ge=1, le=100, description="Noise rows per row of data, from 1 to 100."),
]
NoiseDrawsName = Annotated[
    NoiseDraws,
    Field(description="`sobol`: scrambled Sobol points, less variance; `random`: independent."),
]
MaxIter = Annotated[
    Annotated[int, Field(strict=True, ge=1, le=10_000)] | None,
    Field(
        description="Most iterations of one fit, from 1 to 10000; null leaves it to the recipe. A "
        "fit that stops here says so in its convergence status."
    ),
]
Tolerance = Annotated[
    float,
    Field(
        strict=True,
        gt=0,
        lt=1,
        description="Scaled change of the estimates at which a fit has converged; no unit, "
        "between 0 and 1.",
    ),
]
EdgeThreshold = Annotated[
    float,
    Field(
        strict=True,
        ge=0,
        le=1,
        description="A pair is displayed as selected when its absolute partial correlation, from "
        "0 to 1, is at least this. A display rule, not a test.",
    ),
]
Censored = Annotated[
    CensoredRule,
    Field(
        description="Cells such as `<0.5` or `ND`: `refuse` answers 422 with their counts; "
        "`missing` treats them as missing, which biases the estimates, and warns in the result."
    ),
]


class TruncatedGaussianModelCreate(RequestModel):
    """exp(-x'Kx/2 + h'x - c) on the non-negative orthant."""

    kind: Literal["truncated-gaussian"] = Field(description="The model's kind.")
    linear: Linear = LinearChoice.AUTO
    transform: TransformName = Transform.NONE


class TruncatedGaussianModelSpec(SpecModel):
    """exp(-x'Kx/2 + h'x - c) on the non-negative orthant."""

    kind: Literal["truncated-gaussian"] = Field(description="The model's kind.")
    linear: Linear
    transform: TransformName


class VnceEstimatorCreate(RequestModel):
    """Variational noise-contrastive estimation: missing cells are integrated out."""

    kind: Literal["vnce"] = Field(description="The estimator's kind.")
    preset: PresetName = Preset.DEFAULT
    penalty: Penalty = PenaltyChoice.AUTO
    penalty_kind: PenaltyShape = PenaltyKind.ADAPTIVE
    noise_ratio: NoiseRatio = 10
    noise_draws: NoiseDrawsName = NoiseDraws.SOBOL
    max_iter: MaxIter = None
    tol: Tolerance = DEFAULT_TOL

    @model_validator(mode="after")
    def _leaves_the_papers_recipe_alone(self) -> Self:
        """Refuse what the recipe would not heed; equal to a default it says nothing."""
        if self.preset is Preset.PAPER:
            asks_for_sobol = "noise_draws" in self.model_fields_set and (
                self.noise_draws is not PAPER_NOISE_DRAWS
            )
            if self.noise_ratio != PAPER_NOISE_RATIO or asks_for_sobol or self.tol != DEFAULT_TOL:
                raise ValueError(
                    'Preset "paper" fixes noise_ratio = 10, noise_draws = "random" and its own '
                    'stopping rule; leave noise_ratio, noise_draws and tol out, or use "default".'
                )
        return self


class VnceEstimatorSpec(SpecModel):
    """Variational noise-contrastive estimation: missing cells are integrated out."""

    kind: Literal["vnce"] = Field(description="The estimator's kind.")
    preset: PresetName
    penalty: Penalty
    penalty_kind: PenaltyShape
    noise_ratio: NoiseRatio
    noise_draws: NoiseDrawsName
    max_iter: MaxIter
    tol: Tolerance


class NceEstimatorCreate(RequestModel):
    """Noise-contrastive estimation on a filled or shortened table; a comparator."""

    kind: Literal["nce"] = Field(description="The estimator's kind.")
    imputation: Annotated[
        Imputation,
        Field(
            description="What missing cells become: the column's `mean`, `zero`, a draw of the "
            "`noise`, or `drop` every row that has one."
        ),
    ] = Imputation.MEAN
    penalty: Penalty = PenaltyChoice.AUTO
    penalty_kind: PenaltyShape = PenaltyKind.ADAPTIVE
    noise_ratio: NoiseRatio = 10
    noise_draws: NoiseDrawsName = NoiseDraws.SOBOL
    max_iter: MaxIter = None
    tol: Tolerance = DEFAULT_TOL


class NceEstimatorSpec(SpecModel):
    """Noise-contrastive estimation on a filled or shortened table; a comparator."""

    kind: Literal["nce"] = Field(description="The estimator's kind.")
    imputation: Annotated[Imputation, Field(description="What missing cells become.")]
    penalty: Penalty
    penalty_kind: PenaltyShape
    noise_ratio: NoiseRatio
    noise_draws: NoiseDrawsName
    max_iter: MaxIter
    tol: Tolerance


EstimatorCreate = Annotated[VnceEstimatorCreate | NceEstimatorCreate, Field(discriminator="kind")]
EstimatorSpec = Annotated[VnceEstimatorSpec | NceEstimatorSpec, Field(discriminator="kind")]


class EstimationJobCreate(RequestModel):
    """Ask for one network to be estimated from one data set."""

    kind: Literal["estimation"] = Field(description="The job's kind.")
    dataset_id: DatasetId
    variables: Annotated[
        Annotated[list[VariableName], Field(min_length=1, max_length=100_000, fail_fast=True)]
        | None,
        Field(
            description="Names of the columns to use, in any order (the data set's is kept), or "
            "null for all. Compared after Unicode NFC."
        ),
    ] = None
    model: TruncatedGaussianModelCreate = Field(
        # A factory, since a default that is an object stops client generators.
        default_factory=lambda: TruncatedGaussianModelCreate(kind="truncated-gaussian"),
        description="What is assumed about the data; left out: `truncated-gaussian`, as it is.",
    )
    estimator: EstimatorCreate = Field(
        default_factory=lambda: VnceEstimatorCreate(kind="vnce"),
        description="How the model is fitted; left out: `vnce`, as it is.",
    )
    edge_threshold: EdgeThreshold = 0.1
    censored: Censored = CensoredRule.REFUSE
    seed: SeedChoice = None
    tag: Tag = None


class EstimationSpec(SpecModel):
    """One estimation with every choice made; data, spec and versions make it repeatable."""

    kind: Literal["estimation"] = Field(description="The job's kind.")
    dataset_id: DatasetId
    variables: list[str] = Field(description="Columns used, in the data set's order and spelling.")
    model: TruncatedGaussianModelSpec = Field(description="What is assumed about the data.")
    estimator: EstimatorSpec = Field(description="How the model is fitted.")
    edge_threshold: EdgeThreshold
    censored: Censored
    seed: Seed
    tag: Tag

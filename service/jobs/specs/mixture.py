"""Estimations of the mixture of two normals in one column: the paper's Section 4.2."""

from typing import Annotated, Literal

from pydantic import Field

from service.jobs.specs.base import (
    DEFAULT_SEED,
    DatasetId,
    Seed,
    SpecModel,
    Tag,
    VariableName,
)
from service.jobs.specs.contrastive import NoiseRatio, NoiseScale
from service.jobs.specs.estimation import Censored
from service.jobs.vocabulary import CensoredRule, MixtureClimb, MixtureForm

Form = Annotated[
    MixtureForm,
    Field(
        description="`normalised`: both components weigh one half; `unnormalised`: they weigh as "
        "their standard deviations do, and the log partition c is estimated with theta."
    ),
]
Climb = Annotated[
    MixtureClimb,
    Field(
        description="`joint` raises the bound in the model's parameters and those of q together; "
        "`exact-em` by turns, q being the posterior. Both end at the same maximum."
    ),
]
NumStarts = Annotated[
    int,
    Field(
        strict=True,
        ge=1,
        le=100,
        description="Random starting points, from 1 to 100; the best end is kept.",
    ),
]
MaxIterations = Annotated[
    Annotated[int, Field(strict=True, ge=1, le=10_000)] | None,
    Field(
        description="Most iterations from one start, from 1 to 10000 (pairs of steps with "
        "`exact-em`); null: 200, or 500 pairs."
    ),
]


class MixtureModelSpec(SpecModel):
    """Two normals about zero in one column, the standard deviation of one of them known."""

    kind: Literal["mixture"] = Field("mixture", description="The model's kind.")
    form: Form = MixtureForm.UNNORMALISED
    sigma_1: float = Field(
        1.0,
        strict=True,
        gt=0,
        allow_inf_nan=False,
        description="Standard deviation of the known component, in the data's unit.",
    )


class MixtureVnceEstimatorSpec(SpecModel):
    """Variational noise-contrastive estimation of the mixture, its component the latent."""

    kind: Literal["vnce"] = Field("vnce", description="The estimator's kind.")
    climb: Climb = MixtureClimb.JOINT
    noise_ratio: NoiseRatio = 10
    noise_scale: NoiseScale = 1.0
    n_starts: NumStarts = 5
    max_iter: MaxIterations = None


class MixtureNceEstimatorSpec(SpecModel):
    """Noise-contrastive estimation of the mixture, its component summed out."""

    kind: Literal["nce"] = Field("nce", description="The estimator's kind.")
    noise_ratio: NoiseRatio = 10
    noise_scale: NoiseScale = 1.0
    n_starts: NumStarts = 5
    max_iter: MaxIterations = None


class MixtureMleEstimatorSpec(SpecModel):
    """Maximum likelihood of the mixture, whose normalising constant is known."""

    kind: Literal["mle"] = Field("mle", description="The estimator's kind.")
    n_starts: NumStarts = 5
    max_iter: MaxIterations = None


MixtureEstimatorSpec = Annotated[
    MixtureVnceEstimatorSpec | MixtureNceEstimatorSpec | MixtureMleEstimatorSpec,
    Field(discriminator="kind"),
]


class MixtureEstimationSpec(SpecModel):
    """The mixture of two normals, estimated from one column."""

    kind: Literal["estimation"] = Field("estimation", description="The job's kind.")
    dataset_id: DatasetId
    variables: (
        Annotated[list[VariableName], Field(min_length=1, max_length=100_000, fail_fast=True)]
        | None
    ) = Field(
        None,
        description="Name of the one column to use, in a list; null: the only one. Compared as "
        "names are stored: in Unicode NFC, trimmed. A job shows the one it uses.",
    )
    model: MixtureModelSpec = Field(description="Two normals about zero in one column.")
    estimator: MixtureEstimatorSpec = Field(
        # A factory, since a default that is an object stops client generators.
        default_factory=MixtureVnceEstimatorSpec,
        description="How the model is fitted: by `vnce`, which integrates missing cells out, or a "
        "comparator; left out: `vnce`.",
    )
    censored: Censored = CensoredRule.REFUSE
    seed: Seed = DEFAULT_SEED
    tag: Tag = None

"""Estimations: a model, an estimator and the data set that they are fitted to."""

from typing import Annotated, Literal

from pydantic import Field

from service.http.request_model import RequestModel
from service.jobs.specs.base import (
    DEFAULT_SEED,
    DatasetId,
    Seed,
    SeedChoice,
    SpecModel,
    Tag,
    VariableName,
)
from service.jobs.specs.comparators import (
    ContrastiveDivergenceEstimatorCreate,
    ContrastiveDivergenceEstimatorSpec,
    GaussianEmEstimatorCreate,
    GaussianEmEstimatorSpec,
    GaussianScoreMatchingEstimatorCreate,
    GaussianScoreMatchingEstimatorSpec,
    MleEstimatorCreate,
    MleEstimatorSpec,
    PseudoLikelihoodEstimatorCreate,
    PseudoLikelihoodEstimatorSpec,
    ScoreMatchingEstimatorCreate,
    ScoreMatchingEstimatorSpec,
)
from service.jobs.specs.contrastive import (
    NceEstimatorCreate,
    NceEstimatorSpec,
    VnceEstimatorCreate,
    VnceEstimatorSpec,
)
from service.jobs.specs.models import ModelCreate, ModelSpec, TruncatedGaussianModelCreate
from service.jobs.vocabulary import CensoredRule

EdgeThreshold = Annotated[
    float,
    Field(
        strict=True,
        ge=0,
        le=1,
        description="Least absolute partial correlation, from 0 to 1, of a pair that is displayed "
        "as selected. A display rule, not a test.",
    ),
]
MinObserved = Annotated[
    Annotated[int, Field(strict=True, ge=1, le=1_000_000_000)] | None,
    Field(
        description="Observed cells that every variable needs, from 1 to 1000000000; null: 10, or "
        "2 % of the rows with something observed if that is more, but not more than half of them."
    ),
]
Censored = Annotated[
    CensoredRule,
    Field(
        description="Cells such as `<0.5` or `ND`: `refuse` the table, or treat them as `missing`, "
        "which biases the estimates. The refusal (422) has their counts, the result a warning."
    ),
]

EstimatorCreate = Annotated[
    VnceEstimatorCreate
    | NceEstimatorCreate
    | MleEstimatorCreate
    | ContrastiveDivergenceEstimatorCreate
    | PseudoLikelihoodEstimatorCreate
    | ScoreMatchingEstimatorCreate
    | GaussianEmEstimatorCreate
    | GaussianScoreMatchingEstimatorCreate,
    Field(discriminator="kind"),
]
EstimatorSpec = Annotated[
    VnceEstimatorSpec
    | NceEstimatorSpec
    | MleEstimatorSpec
    | ContrastiveDivergenceEstimatorSpec
    | PseudoLikelihoodEstimatorSpec
    | ScoreMatchingEstimatorSpec
    | GaussianEmEstimatorSpec
    | GaussianScoreMatchingEstimatorSpec,
    Field(discriminator="kind"),
]


class EstimationJobCreate(RequestModel):
    """Ask for one network to be estimated from one data set."""

    kind: Literal["estimation"] = Field(description="The job's kind.")
    dataset_id: DatasetId
    variables: Annotated[
        Annotated[list[VariableName], Field(min_length=1, max_length=100_000, fail_fast=True)]
        | None,
        Field(
            description="Names of the columns to use, in any order (the data set's is kept); null: "
            "all. Compared as names are stored: in Unicode NFC, trimmed."
        ),
    ] = None
    model: ModelCreate = Field(
        # A factory, since a default that is an object stops client generators.
        default_factory=lambda: TruncatedGaussianModelCreate(kind="truncated-gaussian"),
        description="What is assumed: a network of non-negative columns, `truncated-gaussian`, or "
        "of any, `gaussian`; left out: `truncated-gaussian`.",
    )
    estimator: EstimatorCreate = Field(
        default_factory=lambda: VnceEstimatorCreate(kind="vnce"),
        description="How the model is fitted: by `vnce`, which integrates missing cells out, or a "
        "comparator; left out: `vnce`.",
    )
    min_observed: MinObserved = None
    edge_threshold: EdgeThreshold = 0.1
    censored: Censored = CensoredRule.REFUSE
    seed: SeedChoice = DEFAULT_SEED
    tag: Tag = None


class EstimationSpec(SpecModel):
    """One estimation with every choice made; data, spec and versions make it repeatable."""

    kind: Literal["estimation"] = Field(description="The job's kind.")
    dataset_id: DatasetId
    variables: list[str] = Field(description="Columns used, in the data set's order and spelling.")
    model: ModelSpec = Field(description="What is assumed about the data.")
    estimator: EstimatorSpec = Field(description="How the model is fitted.")
    min_observed: MinObserved
    edge_threshold: EdgeThreshold
    censored: Censored
    seed: Seed
    tag: Tag

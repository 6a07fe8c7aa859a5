"""Estimations: a model, an estimator and the data set that they are fitted to."""

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
from service.jobs.specs.comparators import (
    ContrastiveDivergenceEstimatorSpec,
    GaussianEmEstimatorSpec,
    GaussianScoreMatchingEstimatorSpec,
    MleEstimatorSpec,
    PseudoLikelihoodEstimatorSpec,
    ScoreMatchingEstimatorSpec,
)
from service.jobs.specs.contrastive import (
    NceEstimatorSpec,
    VnceEstimatorSpec,
)
from service.jobs.specs.models import ModelSpec, TruncatedGaussianModelSpec
from service.jobs.vocabulary import CensoredRule

# As many have parameters of their own: the engine's limit.
MAX_IMPUTATIONS = 100

Variables = Annotated[
    Annotated[list[VariableName], Field(min_length=1, max_length=100_000, fail_fast=True)] | None,
    Field(
        description="Names of the columns to use, in any order (the data set's is kept); null: "
        "all. Compared as names are stored: in Unicode NFC, trimmed. A job shows those it "
        "uses, in the data set's order and spelling."
    ),
]
MinObserved = Annotated[
    Annotated[int, Field(strict=True, ge=1, le=1_000_000_000)] | None,
    Field(
        description="Observed cells that every variable needs, from 1 to 1000000000; null: 10, or "
        "2 % of the rows with something observed if that is more, but not more than half of them."
    ),
]
Cluster = Annotated[
    VariableName | None,
    Field(
        description="Column of the data set that has the same value in rows that may depend on "
        "each other, such as those of one patient or plate; null: rows are independent. Not among "
        "the variables; each row has a value. Of a column of texts the upload's `labels` keep "
        "which are equal."
    ),
]
EdgeThreshold = Annotated[
    float,
    Field(
        strict=True,
        ge=0,
        le=1,
        description="Absolute partial correlation, from 0 to 1, from which an edge matters: one "
        "whose interval lies within it is absent. Where edges have no intervals, and of a graph by "
        "`ebic` or `stability`, pairs that reach it are selected, elsewhere those found present.",
    ),
]
Censored = Annotated[
    CensoredRule,
    Field(
        description="Cells such as `<0.5` or `ND`: `refuse` the table, or treat them as `missing`, "
        "which biases the estimates. The refusal (422) has their counts, the result a warning."
    ),
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


class EstimationSpec(SpecModel):
    """One network, estimated from one data set; with the versions it can be repeated."""

    kind: Literal["estimation"] = Field("estimation", description="The job's kind.")
    dataset_id: DatasetId
    variables: Variables = None
    cluster: Cluster = None
    model: ModelSpec = Field(
        # A factory, since a default that is an object stops client generators.
        default_factory=TruncatedGaussianModelSpec,
        description="What is assumed: a network of non-negative columns, `truncated-gaussian`, or "
        "of any, `gaussian`; left out: `truncated-gaussian`.",
    )
    estimator: EstimatorSpec = Field(
        default_factory=VnceEstimatorSpec,
        description="How the model is fitted: by `vnce`, which integrates missing cells out, or a "
        "comparator; left out: `vnce`.",
    )
    min_observed: MinObserved = None
    edge_threshold: EdgeThreshold = 0.1
    imputations: Annotated[int, Field(strict=True, ge=1, le=MAX_IMPUTATIONS)] | None = Field(
        None,
        description=f"Multiple imputation: completed tables to draw, from 1 to {MAX_IMPUTATIONS}, "
        "in the files `imputations-m.csv` and `imputations-m.parquet`, for estimates of your own "
        "that you pool by Rubin's rules; null: only one table, of conditional means.",
    )
    censored: Censored = CensoredRule.REFUSE
    seed: Seed = DEFAULT_SEED
    tag: Tag = None

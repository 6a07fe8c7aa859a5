"""Comparisons: several models and estimators on one table, in parts."""

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from service.http.request_model import Label
from service.jobs.specs.base import DEFAULT_SEED, DatasetId, Seed, SpecModel, Tag
from service.jobs.specs.contrastive import VnceEstimatorSpec
from service.jobs.specs.estimation import (
    Censored,
    Cluster,
    EdgeThreshold,
    EstimationSpec,
    EstimatorSpec,
    MinObserved,
    Variables,
)
from service.jobs.specs.models import ModelSpec, TruncatedGaussianModelSpec
from service.jobs.vocabulary import CensoredRule

MOST_SPECIFICATIONS = 12
MOST_FOLDS = 20

Folds = Annotated[int, Field(strict=True, ge=2, le=MOST_FOLDS)]


def _text(value: Any) -> str:  # Any: what a field of JSON may hold
    if isinstance(value, list):
        return ",".join(map(_text, value))
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


class Specification(SpecModel):
    """One of the models that are compared, and how it is fitted."""

    name: Label | None = Field(
        None,
        description="What the result calls it, 1 to 200 characters; null: its kinds and options, "
        "such as `gaussian:gaussian-em:penalty=ebic`.",
    )
    model: ModelSpec = Field(
        default_factory=TruncatedGaussianModelSpec,
        description="As an estimation's; left out: `truncated-gaussian`.",
    )
    estimator: EstimatorSpec = Field(
        default_factory=VnceEstimatorSpec, description="As an estimation's; left out: `vnce`."
    )

    @property
    def kinds_and_options(self) -> str:
        """What was asked for but for defaults, as the command line takes it."""
        options = [
            f"{name}={_text(value)}"
            for part in (self.model, self.estimator)
            for name, value in part.model_dump(mode="json", exclude_defaults=True).items()
        ]
        return ":".join([self.model.kind, self.estimator.kind, *options])


class ComparisonSpec(SpecModel):
    """Several models of one table, judged by rows that they have not seen."""

    kind: Literal["comparison"] = Field("comparison", description="The job's kind.")
    dataset_id: DatasetId
    specifications: list[Specification] = Field(
        min_length=2,
        max_length=MOST_SPECIFICATIONS,
        fail_fast=True,
        description=f"What is compared, 2 to {MOST_SPECIFICATIONS}; their names differ.",
    )
    n_folds: Folds = Field(
        5,
        description=f"Cross-validation folds, from 2 to {MOST_FOLDS}, the same for all models: "
        "each is fitted without every fold, and to all rows.",
    )
    variables: Variables = None
    cluster: Cluster = None
    min_observed: MinObserved = None
    edge_threshold: EdgeThreshold = 0.1
    censored: Censored = CensoredRule.REFUSE
    seed: Seed = DEFAULT_SEED
    tag: Tag = None

    def estimation(self, position: int) -> EstimationSpec:
        """Return what one of the specifications asks for, as an estimation."""
        one = self.specifications[position]
        shared: dict[str, Any] = {
            name: getattr(self, name)
            for name in (
                "dataset_id",
                "variables",
                "cluster",
                "min_observed",
                "edge_threshold",
                "censored",
                "seed",
            )
        }
        # Parts of a request that was validated need it no more.
        return EstimationSpec.model_construct(model=one.model, estimator=one.estimator, **shared)


class ComparisonPartSpec(SpecModel):
    """One of a comparison's models; made by the comparison's own job, never by a client."""

    kind: Literal["comparison-part"] = Field("comparison-part", description="The job's kind.")
    estimation: EstimationSpec = Field(description="The fit to all rows.")
    n_folds: Folds = Field(5, description="Parts of the rows, each held out once.")
    part: int = Field(ge=0, description="Which part, from 0.")
    label: str = Field(description="What the comparison calls it.")
    tag: Tag = None

"""What a job may name: models and estimators, with the schema of each specification."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from service.http.request_model import RequestModel
from service.http.scoped_route import ScopedRoute
from service.jobs.specs.comparators import (
    ContrastiveDivergenceEstimatorSpec,
    GaussianEmEstimatorSpec,
    GaussianScoreMatchingEstimatorSpec,
    MleEstimatorSpec,
    PseudoLikelihoodEstimatorSpec,
    ScoreMatchingEstimatorSpec,
)
from service.jobs.specs.contrastive import NceEstimatorSpec, VnceEstimatorSpec
from service.jobs.specs.mixture import (
    MixtureMleEstimatorSpec,
    MixtureModelSpec,
    MixtureNceEstimatorSpec,
    MixtureVnceEstimatorSpec,
)
from service.jobs.specs.models import GaussianModelSpec, TruncatedGaussianModelSpec

router = APIRouter(prefix="/v1", tags=["kinds"], route_class=ScopedRoute)

# The recommended one first.
_MODELS: tuple[tuple[RequestModel, str], ...] = (
    (
        TruncatedGaussianModelSpec(),
        "Every column is a quantity that cannot be negative, such as a concentration. "
        "Skewed columns fit better after a transform; `auto` chooses one by held-out rows.",
    ),
    (
        GaussianModelSpec(),
        "Columns may be negative and are about normal, such as log ratios or z-scores.",
    ),
    (
        MixtureModelSpec(),
        "One column of values about zero that come from two sources, the spread of one of them "
        "known, such as noise of known size with outliers. It makes no network.",
    ),
)
_NETWORK, _LINE, _MIXTURE = "truncated-gaussian", "gaussian", "mixture"
# Each with the models that it estimates.
_ESTIMATORS: tuple[tuple[RequestModel, str, list[str]], ...] = (
    (
        VnceEstimatorSpec(),
        "Cells are missing: no row is left out and no constant is filled in. Without missing cells "
        "it gives what `nce` gives.",
        [_NETWORK, _LINE],
    ),
    (
        MleEstimatorSpec(),
        "A second opinion on `vnce` where the truncated Gaussian can be sampled well: it is fast "
        "and efficient, but has no objective to choose a penalty by.",
        [_NETWORK],
    ),
    (
        PseudoLikelihoodEstimatorSpec(),
        "A deterministic comparator for complete tables; Gibbs sampling imputes missing cells.",
        [_NETWORK],
    ),
    (
        ScoreMatchingEstimatorSpec(),
        "The quickest comparator, a linear system; missing cells are imputed by Gibbs sampling.",
        [_NETWORK],
    ),
    (
        ContrastiveDivergenceEstimatorSpec(),
        "For comparison with a usual way of fitting unnormalised models; its step size matters.",
        [_NETWORK],
    ),
    (
        NceEstimatorSpec(),
        "For comparison: what filling in or leaving out does to the network. With many missing "
        "cells its edges are badly ranked.",
        [_NETWORK, _LINE],
    ),
    (
        GaussianEmEstimatorSpec(),
        'The estimator of model "gaussian": missing cells are integrated out exactly.',
        [_LINE],
    ),
    (
        GaussianScoreMatchingEstimatorSpec(),
        "For comparison with score matching of incomplete rows; with most cells missing set "
        "`penalty`.",
        [_LINE],
    ),
    (
        MixtureVnceEstimatorSpec(),
        "To see VNCE at work where its right answer is known: that of `nce`.",
        [_MIXTURE],
    ),
    (
        MixtureNceEstimatorSpec(),
        "What `vnce` must agree with; quicker, as the component can be summed out.",
        [_MIXTURE],
    ),
    (
        MixtureMleEstimatorSpec(),
        "The most accurate where the data come from the mixture.",
        [_MIXTURE],
    ),
)


class KindRead(BaseModel):
    """A kind of model or estimator."""

    kind: str = Field(description="The word to put in `kind`.")
    title: str = Field(description="What it is.")
    use_when: str = Field(description="When it is the right choice.")
    defaults: dict[str, Any] = Field(description="The specification with every default filled in.")
    json_schema: dict[str, Any] = Field(description="JSON schema of the specification.")


class EstimatorKindRead(KindRead):
    """A kind of estimator; what the same word may say can depend on the model."""

    models: list[str] = Field(description="Kinds of model that it estimates.")


class ModelKindList(BaseModel):
    """All kinds of model."""

    items: list[KindRead] = Field(description="The recommended one first.")


class EstimatorKindList(BaseModel):
    """All kinds of estimator."""

    items: list[EstimatorKindRead] = Field(description="The recommended one first.")


def _describe(defaults: RequestModel, use_when: str) -> dict[str, Any]:
    document = defaults.model_dump(mode="json")
    return {
        "kind": document["kind"],
        "title": (type(defaults).__doc__ or "").strip(),
        "use_when": use_when,
        "defaults": document,
        "json_schema": type(defaults).model_json_schema(),
    }


@router.get("/model-kinds", operation_id="list_model_kinds")
def list_model_kinds() -> ModelKindList:
    """List the models that can be estimated."""
    return ModelKindList(items=[KindRead(**_describe(*described)) for described in _MODELS])


@router.get("/estimator-kinds", operation_id="list_estimator_kinds")
def list_estimator_kinds() -> EstimatorKindList:
    """List the ways in which a model can be fitted."""
    return EstimatorKindList(
        items=[
            EstimatorKindRead(**_describe(defaults, use_when), models=models)
            for defaults, use_when, models in _ESTIMATORS
        ]
    )

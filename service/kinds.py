"""What a job may name: models and estimators, with the schema of each specification."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from service.jobs.specs.base import RequestModel
from service.jobs.specs.comparators import (
    ContrastiveDivergenceEstimatorCreate,
    GaussianEmEstimatorCreate,
    MleEstimatorCreate,
    PseudoLikelihoodEstimatorCreate,
    ScoreMatchingEstimatorCreate,
)
from service.jobs.specs.contrastive import NceEstimatorCreate, VnceEstimatorCreate
from service.jobs.specs.models import GaussianModelCreate, TruncatedGaussianModelCreate

router = APIRouter(prefix="/v1", tags=["kinds"])

# The recommended one first.
_MODELS: tuple[tuple[RequestModel, str], ...] = (
    (
        TruncatedGaussianModelCreate(kind="truncated-gaussian"),
        "Every column is a quantity that cannot be negative, such as a concentration. "
        "Skewed columns fit better after the transform `sqrt`, `cbrt` or `log1p`.",
    ),
    (
        GaussianModelCreate(kind="gaussian"),
        "Columns may be negative and are about normal, such as log ratios or z-scores.",
    ),
)
_ESTIMATORS: tuple[tuple[RequestModel, str], ...] = (
    (
        VnceEstimatorCreate(kind="vnce"),
        "Cells are missing: no row is left out and no constant is filled in. Without missing cells "
        "it gives what `nce` gives.",
    ),
    (
        MleEstimatorCreate(kind="mle"),
        "A second opinion on `vnce` where the truncated Gaussian can be sampled well: it is fast "
        "and efficient, but has no objective to choose a penalty by.",
    ),
    (
        PseudoLikelihoodEstimatorCreate(kind="pseudo-likelihood"),
        "A deterministic comparator for complete tables; gaps are imputed by Gibbs sampling.",
    ),
    (
        ScoreMatchingEstimatorCreate(kind="score-matching"),
        "The quickest comparator, a linear system; gaps are imputed by Gibbs sampling.",
    ),
    (
        ContrastiveDivergenceEstimatorCreate(kind="contrastive-divergence"),
        "For comparison with a usual way of fitting unnormalised models; its step size matters.",
    ),
    (
        NceEstimatorCreate(kind="nce"),
        "For comparison: what filling in or leaving out does to the network. With many missing "
        "cells its edges are badly ranked.",
    ),
    (
        GaussianEmEstimatorCreate(kind="gaussian-em"),
        'The estimator of model "gaussian": gaps are integrated out exactly.',
    ),
)


class KindRead(BaseModel):
    """A kind of model or estimator."""

    kind: str = Field(description="The word to put in `kind`.")
    title: str = Field(description="What it is.")
    use_when: str = Field(description="When it is the right choice.")
    defaults: dict[str, Any] = Field(description="The specification with every default filled in.")
    json_schema: dict[str, Any] = Field(description="JSON schema of the specification.")


class KindList(BaseModel):
    """All kinds."""

    items: list[KindRead] = Field(description="The recommended one first.")


def _describe(defaults: RequestModel, use_when: str) -> KindRead:
    document = defaults.model_dump(mode="json")
    return KindRead(
        kind=document["kind"],
        title=(type(defaults).__doc__ or "").strip(),
        use_when=use_when,
        defaults=document,
        json_schema=type(defaults).model_json_schema(),
    )


@router.get("/model-kinds", operation_id="list_model_kinds")
def list_model_kinds() -> KindList:
    """List the models that can be estimated."""
    return KindList(items=[_describe(*described) for described in _MODELS])


@router.get("/estimator-kinds", operation_id="list_estimator_kinds")
def list_estimator_kinds() -> KindList:
    """List the ways in which a model can be fitted."""
    return KindList(items=[_describe(*described) for described in _ESTIMATORS])

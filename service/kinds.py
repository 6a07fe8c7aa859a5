"""What a job may name: models and estimators, with the schema of each specification."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from service.jobs.specs.base import RequestModel
from service.jobs.specs.estimation import (
    NceEstimatorCreate,
    TruncatedGaussianModelCreate,
    VnceEstimatorCreate,
)

router = APIRouter(prefix="/v1", tags=["kinds"])


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


def _describe(defaults: RequestModel, kind: str, use_when: str) -> KindRead:
    return KindRead(
        kind=kind,
        title=(type(defaults).__doc__ or "").strip(),
        use_when=use_when,
        defaults=defaults.model_dump(mode="json"),
        json_schema=type(defaults).model_json_schema(),
    )


@router.get("/model-kinds", operation_id="list_model_kinds")
def list_model_kinds() -> KindList:
    """List the models that can be estimated."""
    return KindList(
        items=[
            _describe(
                TruncatedGaussianModelCreate(kind="truncated-gaussian"),
                "truncated-gaussian",
                "Every column is a quantity that cannot be negative, such as a concentration. "
                "Skewed columns fit better after the transform `sqrt`, `cbrt` or `log1p`.",
            )
        ]
    )


@router.get("/estimator-kinds", operation_id="list_estimator_kinds")
def list_estimator_kinds() -> KindList:
    """List the ways in which a model can be fitted."""
    return KindList(
        items=[
            _describe(
                VnceEstimatorCreate(kind="vnce"),
                "vnce",
                "Cells are missing: no row is left out and no constant is filled in. Without "
                "missing cells it gives what `nce` gives.",
            ),
            _describe(
                NceEstimatorCreate(kind="nce"),
                "nce",
                "For comparison: what filling in or leaving out does to the network. With many "
                "missing cells its edges are badly ranked.",
            ),
        ]
    )

"""Models: what is assumed about the data."""

from typing import Annotated, Literal

from pydantic import Field

from service.jobs.specs.base import RequestModel, SpecModel
from service.jobs.vocabulary import LinearChoice, Transform

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


class GaussianModelCreate(RequestModel):
    """A Gaussian on all of the line in every column; its K is the inverse covariance."""

    kind: Literal["gaussian"] = Field(description="The model's kind.")
    transform: TransformName = Transform.NONE


class GaussianModelSpec(SpecModel):
    """A Gaussian on all of the line in every column; its K is the inverse covariance."""

    kind: Literal["gaussian"] = Field(description="The model's kind.")
    transform: TransformName


ModelCreate = Annotated[
    TruncatedGaussianModelCreate | GaussianModelCreate, Field(discriminator="kind")
]
ModelSpec = Annotated[TruncatedGaussianModelSpec | GaussianModelSpec, Field(discriminator="kind")]

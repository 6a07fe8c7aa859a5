"""Models: what is assumed about the data."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from service.jobs.specs.base import SpecModel
from service.jobs.vocabulary import LinearChoice, ModelKind, Transform

Linear = Annotated[
    LinearChoice,
    Field(
        description="Linear term of the model: `free` estimates it, `zero` leaves it out (the "
        "paper's model), `auto` decides by held-out rows. `auto` also frees it where a variable "
        "lies further from zero than any model without it allows."
    ),
]
TransformName = Annotated[
    Transform,
    Field(
        description="Applied to every observed cell; estimates are on the transformed scale, "
        "imputations on the data's own. `rank-normal` takes smoothed normal scores of the "
        "ranks (half-normal scores under `truncated-gaussian`); `auto` "
        "takes that under which held-out rows have the best log density, one for each variable "
        "where that is clearly better."
    ),
]


class TruncatedGaussianModelSpec(SpecModel):
    """exp(-x'Kx/2 + h'x - c) on the non-negative orthant."""

    may_be_negative: ClassVar[bool] = False

    kind: Literal["truncated-gaussian"] = Field(
        "truncated-gaussian", description="The model's kind."
    )
    linear: Linear = LinearChoice.AUTO
    transform: TransformName = Transform.NONE


class GaussianModelSpec(SpecModel):
    """A Gaussian on all of the line in every column; its K is the inverse covariance."""

    may_be_negative: ClassVar[bool] = True

    kind: Literal["gaussian"] = Field("gaussian", description="The model's kind.")
    transform: TransformName = Transform.NONE

    @property
    def linear(self) -> LinearChoice:
        """Its mean, and with it h, is estimated."""
        return LinearChoice.FREE


def _is_of_a_known_kind(model: Any) -> Any:
    kind = model.get("kind") if isinstance(model, dict) else None
    if isinstance(kind, str) and kind not in list(ModelKind):
        # The union below would say the same of its own kinds, and leave out the mixture.
        expected = {
            "discriminator": "'kind'",
            "expected_tags": ", ".join(map(repr, map(str, ModelKind))),
        }
        raise PydanticCustomError("union_tag_invalid", "Unknown kind of model", expected)
    return model


ModelSpec = Annotated[
    TruncatedGaussianModelSpec | GaussianModelSpec,
    Field(discriminator="kind"),
    BeforeValidator(_is_of_a_known_kind),
]

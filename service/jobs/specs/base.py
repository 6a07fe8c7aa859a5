"""What the specifications of all kinds of job share."""

import secrets
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    Field,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from service.http.request_model import Label, RequestModel, Text

# Fits the signed 32-bit integers that every generator and database takes.
MAX_SEED = 2**31 - 1
DEFAULT_SEED = 0
# The engine's own limit: held-out rows of fewer say nothing.
MIN_ROWS = 6
# Pydantic's context for documents out of the database.
STORED = "stored"

Choice = TypeVar("Choice")


def _unless_stored(value: Any, read: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    return value if info.context is STORED else read(value)


# Bounds that requests keep; what earlier releases have stored may lie beyond them.
OfRequestsOnly = WrapValidator(_unless_stored)


def chosen_seed(wanted: int | None) -> int:
    """Return the seed that was asked for; a drawn one where it is null."""
    return secrets.randbelow(MAX_SEED + 1) if wanted is None else wanted


def planned(choice: Choice | None) -> Choice:
    """Return what a request may leave open and a planned job has."""
    assert choice is not None
    return choice


DatasetId = Annotated[str, Field(description="Identifier of an uploaded data set.")]
VariableName = Text
Seed = Annotated[
    Annotated[int, Field(strict=True, ge=0, le=MAX_SEED)] | None,
    Field(
        description="Seed of every random draw, from 0 to 2147483647; left out: 0, so that the "
        "same request has the same answer; null: one is drawn, stored and shown."
    ),
]
Tag = Annotated[
    Label | None,
    Field(description="Your own label to find jobs by, 1 to 200 characters without line breaks."),
]


MaxIter = Annotated[int, Field(strict=True, ge=1, le=10_000)] | None
# Of each estimator, with what null means there.
MAX_ITER = (
    "Most iterations of one fit, from 1 to 10000; null: {}. A fit that stops here says so in its "
    "convergence status."
)
Tolerance = Annotated[
    float,
    Field(
        strict=True,
        gt=0,
        lt=1,
        description="Scaled change of the estimates at which a fit has converged, between 0 and 1. "
        "It has no unit.",
    ),
]


class SpecModel(RequestModel):
    """Base of every specification, which a client posts, and a job has with every choice made.

    Of a stored document (`specs.spec_of`) a field that is not there has its default, and one that
    is no more is left out; nothing is judged again.
    """

    @model_validator(mode="after")
    def _fits_together(self, info: ValidationInfo) -> Self:
        if info.context is not STORED:
            self.check()
        return self

    def check(self) -> None:
        """Raise `ValueError` where fields of a request do not fit together."""

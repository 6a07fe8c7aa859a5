"""What the specifications of all kinds of job share."""

import secrets
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from service.http.request_model import Label, Text

# Fits the signed 32-bit integers that every generator and database takes.
MAX_SEED = 2**31 - 1
DEFAULT_SEED = 0
# The engine's own limit: held-out rows of fewer say nothing.
MIN_ROWS = 6


def chosen_seed(wanted: int | None) -> int:
    """Return the seed that was asked for; a drawn one where it is null."""
    return secrets.randbelow(MAX_SEED + 1) if wanted is None else wanted


DatasetId = Annotated[str, Field(description="Identifier of an uploaded data set.")]
VariableName = Text
SeedValue = Annotated[int, Field(strict=True, ge=0, le=MAX_SEED)]
Seed = Annotated[SeedValue, Field(description="Seed of every random draw, from 0 to 2147483647.")]
SeedChoice = Annotated[
    SeedValue | None,
    Field(
        description="Seed of every random draw, from 0 to 2147483647; left out: 0, so that the "
        "same request has the same answer; null: one is drawn, stored and shown."
    ),
]
Tag = Annotated[
    Label | None,
    Field(description="Your own label to find jobs by, 1 to 200 characters without line breaks."),
]


MaxIter = Annotated[
    Annotated[int, Field(strict=True, ge=1, le=10_000)] | None,
    Field(
        description="Most iterations of one fit, from 1 to 10000; null: the recipe's own. A fit "
        "that stops here says so in its convergence status."
    ),
]
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


class SpecModel(BaseModel):
    """Base of everything resolved: no field has a default."""

    model_config = ConfigDict(frozen=True)

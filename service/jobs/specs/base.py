"""What the specifications of all kinds of job share."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

# Fits the signed 32-bit integers that every generator and database takes.
MAX_SEED = 2**31 - 1
MAX_FIELDS = 100
# The engine's own limit: fewer rows cannot be dealt to three folds that each say something.
MIN_ROWS = 6


def _is_text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("Half a surrogate pair is no text.") from None
    return value


DatasetId = Annotated[str, Field(description="Identifier of an uploaded data set.")]
Text = Annotated[str, AfterValidator(_is_text)]
VariableName = Text
SeedValue = Annotated[int, Field(strict=True, ge=0, le=MAX_SEED)]
Seed = Annotated[SeedValue, Field(description="Seed of every random draw, from 0 to 2147483647.")]
SeedChoice = Annotated[
    SeedValue | None,
    Field(
        description="Seed of every random draw, from 0 to 2147483647; null: one is chosen, "
        "stored and shown."
    ),
]
# Without control characters, which break lines and which PostgreSQL cannot hold.
TAG_PATTERN = r"^[^\x00-\x1f\x7f]+$"
Label = Annotated[Text, Field(min_length=1, max_length=200, pattern=TAG_PATTERN)]
Tag = Annotated[
    Label | None,
    Field(description="Your own label to find jobs by, 1 to 200 characters without line breaks."),
]


MaxIter = Annotated[
    Annotated[int, Field(strict=True, ge=1, le=10_000)] | None,
    Field(
        description="Most iterations of one fit, from 1 to 10000; null leaves it to the recipe. A "
        "fit that stops here says so in its convergence status."
    ),
]
Tolerance = Annotated[
    float,
    Field(
        strict=True,
        gt=0,
        lt=1,
        description="Scaled change of the estimates at which a fit has converged; no unit, "
        "between 0 and 1.",
    ),
]


class RequestModel(BaseModel):
    """Base of everything a client sends: a field nobody knows is an error, not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _has_few_fields(cls, fields: Any) -> Any:
        # Each unknown field is an error, and a million errors take the server a minute to make.
        if isinstance(fields, dict) and len(fields) > MAX_FIELDS:
            raise ValueError(f"An object here has {MAX_FIELDS} fields at most.")
        return fields


class SpecModel(BaseModel):
    """Base of everything resolved: no field has a default."""

    model_config = ConfigDict(frozen=True)

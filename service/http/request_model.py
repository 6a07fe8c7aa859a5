"""Objects that clients send: a field that nobody knows is an error, and few errors are made."""

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, model_validator

MAX_FIELDS = 100
Fields = TypeVar("Fields")


def has_few_fields(fields: Fields) -> Fields:
    """Return an object's fields as they are, unless they are too many.

    Each unknown one is an error, and a million errors take the server a minute to make.
    """
    if isinstance(fields, dict) and len(fields) > MAX_FIELDS:
        raise ValueError(f"An object here has {MAX_FIELDS} fields at most.")
    return fields


class RequestModel(BaseModel):
    """Base of everything a client sends: a field nobody knows is an error, not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _has_few_fields(cls, fields: Any) -> Any:
        return has_few_fields(fields)

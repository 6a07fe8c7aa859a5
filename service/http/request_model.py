"""What clients send: a field that nobody knows is an error, few errors are made, text is text."""

from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

MAX_FIELDS = 100
Fields = TypeVar("Fields")


def _is_text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("Half a surrogate pair is no text.") from None
    return value


Text = Annotated[str, AfterValidator(_is_text)]
# Without control characters, which break lines and which PostgreSQL cannot hold.
LABEL_PATTERN = r"^[^\x00-\x1f\x7f]+$"
Label = Annotated[Text, Field(min_length=1, max_length=200, pattern=LABEL_PATTERN)]


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

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        # The word that says which form of several this is cannot be left out of a document, though
        # programs that make one by its class need not say it.
        document = handler(core)
        schema = handler.resolve_ref_schema(document)
        words = [name for name, field in schema["properties"].items() if "const" in field]
        if words:
            schema["required"] = [
                *words,
                *(n for n in schema.get("required", []) if n not in words),
            ]
        return document

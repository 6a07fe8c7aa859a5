"""Judging options by the service's own rules, where no service is asked."""

from typing import TypeVar

import pydantic
from fastapi.exceptions import RequestValidationError

from service.http.problems import ProblemCode, ProblemError
from service.http.validation_items import validation_items
from worker.cli.client import JsonObject

Model = TypeVar("Model")


def validated(adapter: pydantic.TypeAdapter[Model], document: JsonObject) -> Model:
    """Return the validated document; raises `ProblemError` that lists every fault."""
    try:
        return adapter.validate_python(document)
    except pydantic.ValidationError as error:
        entries = [{**entry, "loc": ("body", *entry["loc"])} for entry in error.errors()]
        items = validation_items(RequestValidationError(entries, body=document))
        raise ProblemError(
            ProblemCode.VALIDATION_FAILED, "An option does not fit:", errors=items
        ) from error

"""From pydantic's errors to places in the request; submitted values are not echoed."""

import re
from typing import Any

from fastapi.exceptions import RequestValidationError

from service.http.problems import ProblemItem

_ENUM_MEMBER = re.compile(r"<\w+\.\w+: ('[^']*')>")


def validation_items(error: RequestValidationError) -> list[ProblemItem]:
    """Return one item a place; what several branches of a union say of it is joined."""
    messages: dict[tuple[str, str], list[str]] = {}
    for entry in error.errors():
        messages.setdefault(_place(entry, error.body), []).append(_message(entry))
    return [
        ProblemItem(message="; or: ".join(dict.fromkeys(said)), **{where: name})
        for (where, name), said in messages.items()
    ]


def _place(entry: dict[str, Any], body: Any) -> tuple[str, str]:
    """Return the field of `ProblemItem` that names the place, and its value."""
    where, *path = entry["loc"]
    if where != "body":
        return "parameter", ".".join(map(str, path))
    if entry["type"] == "json_invalid":
        return "pointer", ""
    if entry["type"] in ("union_tag_not_found", "union_tag_invalid"):
        # What is wrong is the field that says which form it is.
        path = [*path, entry["ctx"]["discriminator"].strip("'")]
    is_missing = entry["type"] in ("missing", "union_tag_not_found")
    return "pointer", _pointer(path, body, is_missing=is_missing)


def _pointer(path: list[Any], body: Any, *, is_missing: bool) -> str:
    """Return the JSON pointer; pydantic's path also names branches of unions, which the body lacks.

    Only the last part of a missing field's path is in the pointer without being in the body.
    """
    parts = []
    for position, part in enumerate(path):
        is_last = position == len(path) - 1
        if _has(body, part):
            body = body[part]
            parts.append(part)
        elif is_missing and is_last:
            parts.append(part)
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def _has(body: Any, part: Any) -> bool:
    if isinstance(body, dict):
        return part in body
    return isinstance(body, list) and isinstance(part, int) and part < len(body)


def _message(entry: dict[str, Any]) -> str:
    if entry["type"] == "json_invalid":
        return f"This is no JSON: {entry['ctx']['error']} at character {entry['loc'][1]}."
    if entry["type"] == "value_error":  # raised by our own code, whose words need no prefix
        return str(entry["ctx"]["error"])
    if entry["type"] == "extra_forbidden":
        return "This does not apply here, or is misspelt."
    if entry["type"] == "union_tag_not_found":
        return "Field required: it says which of the possible forms this is."
    if entry["type"] == "union_tag_invalid":
        return f"Must be one of {entry['ctx']['expected_tags']}."
    if entry["type"] == "literal_error":
        # Members of an enumeration come as Python shows them: <PenaltyKind.RIDGE: 'ridge'>.
        return "Must be " + _ENUM_MEMBER.sub(r"\1", entry["ctx"]["expected"]) + "."
    return str(entry["msg"])

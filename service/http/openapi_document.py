"""The OpenAPI document of the app, each thing in it once.

FastAPI gives every field a title made of its name, every operation a summary made of its
function's, and writes parameters and responses again at every operation that has them.
"""

import json
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from itertools import chain
from typing import Any

from fastapi import FastAPI

from service.http.problems import MEDIA_TYPE

Json = dict[str, Any]
# Maps whose keys are names, and values that are no part of the document.
_SCHEMAS = ("properties", "$defs", "schemas")
_EXAMPLES = ("example", "examples", "default", "value")


def install(app: FastAPI) -> None:
    """Have `app.openapi()` return the shorter document."""
    whole = app.openapi
    shorter: Json | None = None

    def openapi() -> Json:
        nonlocal shorter
        if shorter is None:
            document = deepcopy(whole())
            _shorten_schemas([document["paths"], document["components"]])
            for operation in _operations(document):
                _take_summary_from_description(operation)
            _make_keys_optional(document)
            _share_problems(document)
            _share_parameters(document)
            _share_bodies(document)
            shorter = document
        return shorter

    # A subclass would need no assignment, but `FastAPIOffline` is a function that makes an app.
    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI documents it; mypy takes methods for fixed


def _operations(document: Json) -> Iterator[Json]:
    return (operation for path in document["paths"].values() for operation in path.values())


def _shorten_schemas(node: Any, *, is_schema_map: bool = False) -> None:
    """Take the titles out of all schemas below, and write what may be null as a list of types.

    A field may itself be called `title`.
    """
    if isinstance(node, list):
        for item in node:
            _shorten_schemas(item)
    elif isinstance(node, dict):
        if not is_schema_map and isinstance(node.get("title"), str):
            del node["title"]
        for key, value in node.items():
            if key not in _EXAMPLES or is_schema_map:
                _shorten_schemas(value, is_schema_map=key in _SCHEMAS and not is_schema_map)
        if not is_schema_map:
            _join_types(node)


def _join_types(schema: Json) -> None:
    match schema.get("anyOf"):
        case [{"type": str(name)} as first, {"type": "null"}] if first.keys().isdisjoint(
            {"enum", "const", *schema}
        ):
            del schema["anyOf"]
            schema |= {**first, "type": [name, "null"]}


def _take_summary_from_description(operation: Json) -> None:
    summary, _, description = operation.pop("description").partition("\n")
    operation["summary"] = summary
    if description.strip():
        operation["description"] = description.strip()


def _make_keys_optional(document: Json) -> None:
    """Say once that a key may be needed; a service on its own machine alone may ask for none."""
    for operation in _operations(document):
        if not operation.pop("security", None):
            operation["security"] = []
    [scheme] = document["components"]["securitySchemes"]
    document["security"] = [{}, {scheme: []}]


def _share_problems(document: Json) -> None:
    """Put problem responses in one place, by status and codes."""
    shared: Json = {}
    for operation in _operations(document):
        for status, response in operation["responses"].items():
            if MEDIA_TYPE in response.get("content", {}):
                codes = response["description"].split("`")[1::2] if status != "default" else []
                name = ".".join((status, *codes))
                assert shared.setdefault(name, response) == response
                operation["responses"][status] = {"$ref": f"#/components/responses/{name}"}
    document["components"]["responses"] = shared


def _share_parameters(document: Json) -> None:
    """Put parameters that several operations have in one place, by name."""
    listed: list[list[Json]] = [op.get("parameters", []) for op in _operations(document)]
    for parameter in chain.from_iterable(listed):
        # It stands beside the schema too.
        parameter["schema"].pop("description", None)
    times = Counter(map(_text, chain.from_iterable(listed)))
    shared: Json = {}
    for parameters in listed:
        for position, parameter in enumerate(parameters):
            if times[_text(parameter)] > 1:
                name = parameter["name"]
                assert shared.setdefault(name, parameter) == parameter
                parameters[position] = {"$ref": f"#/components/parameters/{name}"}
    document["components"]["parameters"] = shared


def _share_bodies(document: Json) -> None:
    """Put bodies that several operations take in one place, by the first one's name."""
    taking = [operation for operation in _operations(document) if "requestBody" in operation]
    times = Counter(_text(operation["requestBody"]) for operation in taking)
    shared: Json = {}
    names: dict[str, str] = {}
    for operation in taking:
        body = operation["requestBody"]
        if times[_text(body)] > 1:
            name = names.setdefault(_text(body), operation["operationId"])
            shared[name] = body
            operation["requestBody"] = {"$ref": f"#/components/requestBodies/{name}"}
    document["components"]["requestBodies"] = shared


def _text(part: Json) -> str:
    return json.dumps(part, sort_keys=True)

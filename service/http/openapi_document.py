"""The OpenAPI document of the app, each thing in it once.

FastAPI gives every field a title made of its name, and writes the same problem response below every
operation that may answer it.
"""

import re
from copy import deepcopy
from typing import Any

from fastapi import FastAPI

from service.http.problems import MEDIA_TYPE

Json = dict[str, Any]
# Maps whose keys are names, and values that are no part of the document.
_SCHEMAS = ("properties", "$defs", "schemas")
_EXAMPLES = ("example", "examples", "default")


def install(app: FastAPI) -> None:
    """Have `app.openapi()` return the shorter document."""
    whole = app.openapi
    shorter: Json | None = None

    def openapi() -> Json:
        nonlocal shorter
        if shorter is None:
            document = deepcopy(whole())
            _without_titles([document["paths"], document["components"]])
            _share_problems(document)
            shorter = document
        return shorter

    # FastAPI's own way to extend the document; the app is made by a function, so that there is no
    # class to derive from.
    app.openapi = openapi  # type: ignore[method-assign]


def _without_titles(node: Any, *, is_schema_map: bool = False) -> None:
    """Take the titles out of all schemas below; a field may itself be called `title`."""
    if isinstance(node, list):
        for item in node:
            _without_titles(item)
    elif isinstance(node, dict):
        if not is_schema_map and isinstance(node.get("title"), str):
            del node["title"]
        for key, value in node.items():
            if key not in _EXAMPLES:
                _without_titles(value, is_schema_map=key in _SCHEMAS and not is_schema_map)


def _share_problems(document: Json) -> None:
    """Put problem responses that several operations have in one place, by status and codes."""
    shared: Json = {}
    for operations in document["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if MEDIA_TYPE in response.get("content", {}):
                    codes = re.findall(r"`([a-z-]+)`", response["description"])
                    name = ".".join((status, *codes))
                    first = shared.setdefault(name, response)
                    assert first == response
                    operation["responses"][status] = {"$ref": f"#/components/responses/{name}"}
    document["components"]["responses"] = shared

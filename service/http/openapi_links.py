"""Links of the specification: which operations take the identifier that an answer gives."""

from typing import Any


def links_to(parameter: str, *operation_ids: str, field: str = "id") -> dict[str, Any]:
    """Return links that pass a field of the answer on as the path parameter of operations."""
    return {
        operation_id: {
            "operationId": operation_id,
            "parameters": {parameter: f"$response.body#/{field}"},
            "description": f"`{field}` is the `{parameter}` of `{operation_id}`.",
        }
        for operation_id in operation_ids
    }


def link_in_body(operation_id: str, body: dict[str, Any], description: str) -> dict[str, Any]:
    """Return a link to an operation whose request body is made of the answer."""
    return {
        operation_id: {
            "operationId": operation_id,
            "requestBody": body,
            "description": description,
        }
    }

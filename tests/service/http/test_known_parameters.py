"""The query parameters that an operation takes are those of the specification."""

import pytest
from fastapi.testclient import TestClient

from service.app import create_app
from service.http import parameters
from service.settings import Settings


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], list[str]]:
    """Return the parameters that each operation was found to have, by path and method."""
    found: dict[tuple[str, str], list[str]] = {}
    ask = parameters._query_parameters

    def noted(route):
        known = ask(route)
        for method in route.methods:
            found[route.path_format, method.lower()] = list(known)
        return known

    monkeypatch.setattr(parameters, "_query_parameters", noted)
    return found


def test_they_are_the_same_for_every_operation(
    settings: Settings, asked: dict[tuple[str, str], list[str]]
) -> None:
    app = create_app(settings)
    declared = {}
    with TestClient(app, raise_server_exceptions=False) as client:
        document = app.openapi()
        shared = document["components"]["parameters"]
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                named = [
                    shared[parameter["$ref"].rpartition("/")[2]]
                    if "$ref" in parameter
                    else parameter
                    for parameter in operation.get("parameters", [])
                ]
                in_path = {p["name"]: "x" for p in named if p["in"] == "path"}
                body = {"json": {}} if "requestBody" in operation else {}
                client.request(method, path.format(**in_path), params={"unheard-of": "1"}, **body)
                declared[path, method] = [p["name"] for p in named if p["in"] == "query"]
    assert len(asked) > 20
    assert asked == {operation: declared[operation] for operation in asked}

"""The committed OpenAPI document is the app's, and good enough to make clients from."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.commands import openapi
from service.http.problems import KINDS, ProblemCode

COMMITTED = Path(__file__).parents[2] / "openapi.yaml"
METHODS = ("get", "put", "post", "delete", "patch")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    # The C loader, many times as fast.
    return dict(yaml.load(COMMITTED.read_text(encoding="utf-8"), yaml.CSafeLoader))


def operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every operation, its responses written out."""
    shared = document["components"]["responses"]
    for path in document["paths"].values():
        for operation in (path[method] for method in METHODS if method in path):
            responses = {
                status: shared[response["$ref"].rpartition("/")[2]]
                if "$ref" in response
                else response
                for status, response in operation["responses"].items()
            }
            yield {**operation, "responses": responses}


def test_committed_document_is_the_one_of_the_app() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == openapi.document(), "run `make openapi`"


def test_operation_ids_are_unique_and_readable(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for operation in operations(document)]
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    assert all(name.isidentifier() and name.islower() for name in ids)


def test_schema_names_are_ours_and_not_made_up_to_tell_two_apart(
    document: dict[str, Any],
) -> None:
    names = document["components"]["schemas"]
    assert [name for name in names if not name.isalnum()] == []
    assert "HTTPValidationError" not in names


def test_every_error_is_declared_as_a_problem(document: dict[str, Any]) -> None:
    expected = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for operation in operations(document):
        for status, response in operation["responses"].items():
            if int(status) >= 400 and operation["operationId"] != "get_readiness":
                assert response["content"] == expected, (operation["operationId"], status)


def test_every_operation_with_input_declares_that_it_may_be_wrong(
    document: dict[str, Any],
) -> None:
    for operation in operations(document):
        if operation.get("parameters") or "requestBody" in operation:
            assert "422" in operation["responses"], operation["operationId"]
        if "requestBody" in operation:
            assert {"413", "415"} <= set(operation["responses"]), operation["operationId"]


def test_every_operation_that_asks_for_a_key_declares_what_the_gate_answers(
    document: dict[str, Any],
) -> None:
    keyed = [operation for operation in operations(document) if "security" in operation]
    assert len(keyed) > 30
    for operation in keyed:
        declared = set(operation["responses"])
        assert {"401", "403", "429", "500", "503"} <= declared, operation["operationId"]


def test_a_full_quota_is_declared_by_what_stores(document: dict[str, Any]) -> None:
    declaring = {
        operation["operationId"]
        for operation in operations(document)
        if "`quota-reached`" in operation["responses"].get("413", {}).get("description", "")
    }
    assert declaring == {"create_dataset", "create_job"}


def test_no_schema_has_a_title_made_of_its_name(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert [name for name, schema in schemas.items() if "title" in schema] == []
    # A field of that name is no title.
    assert "title" in schemas["Problem"]["properties"]


def test_everything_is_described(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    bare = [name for name, schema in schemas.items() if not schema.get("description")]
    bare += [
        f"{name}.{field}"
        for name, schema in schemas.items()
        for field, content in schema.get("properties", {}).items()
        # A reference is described where it leads.
        if not content.get("description") and "$ref" not in content
    ]
    for operation in operations(document):
        name = operation["operationId"]
        bare += [] if operation.get("description") else [name]
        bare += [
            f"{name}({parameter['name']})"
            for parameter in operation.get("parameters", [])
            if not parameter.get("description")
        ]
    assert bare == []


def test_a_specification_is_one_schema_and_its_kind_need_not_be_said(
    document: dict[str, Any],
) -> None:
    schemas = document["components"]["schemas"]
    specs = {name: schema for name, schema in schemas.items() if name.endswith("Spec")}
    assert len(specs) > 20
    for name, spec in specs.items():
        constants = {n: f for n, f in spec.get("properties", {}).items() if "const" in f}
        assert "oneOf" in spec or constants, name
        for word, field in constants.items():
            # It is always in the document; a program's class has it by default.
            assert field["default"] == field["const"], name
            assert word in spec["required"], name
    ends = ("Create", "Input", "Output")
    twins = {
        n for n in schemas for end in ends if n.endswith(end) and n[: -len(end)] + "Spec" in specs
    }
    assert twins == set()


@pytest.mark.parametrize("code", list(ProblemCode))
def test_every_code_has_a_status_and_a_title(code: ProblemCode) -> None:
    assert 400 <= KINDS[code].status <= 599
    assert KINDS[code].title


def test_every_code_is_in_the_documentation() -> None:
    documented = (COMMITTED.parent / "docs" / "http-api.md").read_text(encoding="utf-8")
    assert [code for code in ProblemCode if f"`{code}`" not in documented] == []

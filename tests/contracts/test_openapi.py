"""The committed OpenAPI document is the app's, and good enough to make clients from."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient
from pydantic import SecretStr

from service.commands import openapi
from service.http.problems import KINDS, ProblemCode
from service.settings import MIN_HASH_KEY_LENGTH, Settings

COMMITTED = Path(__file__).parents[2] / "openapi.yaml"
METHODS = ("get", "put", "post", "delete", "patch")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    # The C loader, many times as fast.
    return dict(yaml.load(COMMITTED.read_text(encoding="utf-8"), yaml.CSafeLoader))


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Return settings with which keys can be made."""
    return settings.model_copy(update={"key_secret": SecretStr("k" * MIN_HASH_KEY_LENGTH)})


def operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every operation, what it shares with others written out."""

    def written_out(part: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in part:
            return part
        _, _, kind, name = part["$ref"].split("/")
        return dict(document["components"][kind][name])

    for path in document["paths"].values():
        for operation in (path[method] for method in METHODS if method in path):
            yield {
                **operation,
                "responses": {s: written_out(r) for s, r in operation["responses"].items()},
                "parameters": [written_out(p) for p in operation.get("parameters", [])],
                "requestBody": written_out(operation.get("requestBody", {})),
            }


@pytest.mark.slow
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
            is_error = status == "default" or int(status) >= 400
            if is_error and operation["operationId"] != "get_readiness":
                assert response["content"] == expected, (operation["operationId"], status)


def test_every_operation_declares_what_any_may_answer_and_what_only_bodies_do(
    document: dict[str, Any],
) -> None:
    for operation in operations(document):
        told = operation["responses"]["default"]["description"]
        assert all(f"`{code}`" in told for code in ("validation-failed", "unauthenticated"))
        if operation["requestBody"]:
            assert {"413", "415"} <= set(operation["responses"]), operation["operationId"]


def test_a_key_is_optional_but_where_none_is_looked_at(document: dict[str, Any]) -> None:
    assert document["security"] == [{}, {"ApiKey": []}]
    without = {o["operationId"] for o in operations(document) if o.get("security") == []}
    assert without == {"get_liveness", "get_readiness", "get_version"}


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
    tags = {tag["name"] for tag in document["tags"] if tag["description"]}
    for operation in operations(document):
        name = operation["operationId"]
        # One of several words, not the function's name.
        bare += [] if re.fullmatch(r"[A-Z].+ .+[.]", operation["summary"]) else [name]
        bare += [
            f"{name}({parameter['name']})"
            for parameter in operation["parameters"]
            if not parameter.get("description")
        ]
        # A tag with its description.
        bare += [name] if set(operation["tags"]) - tags else []
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


def test_the_example_of_every_post_is_answered(
    document: dict[str, Any], client: TestClient
) -> None:
    dataset_id = ""
    posted = Counter[str]()
    for path, methods in document["paths"].items():
        if "post" not in methods:
            continue
        [operation] = operations({**document, "paths": {path: {"post": methods["post"]}}})
        [(media_type, content)] = operation["requestBody"]["content"].items()
        examples = content.get("examples", {"only": {"value": content.get("example")}})
        for example in examples.values():
            body = example["value"]
            # Data sets are posted first, and each has an identifier of its own.
            if isinstance(body, dict) and "dataset_id" in body:
                body = {**body, "dataset_id": dataset_id}
            sent = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            answer = client.post(path, content=sent, headers={"Content-Type": media_type})
            assert answer.is_success, (path, answer.text)
            dataset_id = answer.json()["id"] if path == "/v1/datasets" else dataset_id
            posted[operation["operationId"]] += 1
    assert posted.keys() == {
        "create_dataset",
        "preview_dataset",
        "create_job",
        "validate_job",
        "create_api_key",
    }


@pytest.mark.parametrize("code", list(ProblemCode))
def test_every_code_has_a_status_and_a_title(code: ProblemCode) -> None:
    assert 400 <= KINDS[code].status <= 599
    assert KINDS[code].title


def test_every_code_is_in_the_documentation() -> None:
    documented = (COMMITTED.parent / "docs" / "http-api.md").read_text(encoding="utf-8")
    assert [code for code in ProblemCode if f"`{code}`" not in documented] == []

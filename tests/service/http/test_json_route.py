"""JSON bodies are bounded in what they hold, before Python makes all of it."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.http import json_route
from service.http.json_route import LONG_BYTES, MOST_ARRAYS, MOST_OBJECTS, MOST_TEXTS

JSON = {"Content-Type": "application/json"}


def refusal(client: TestClient, body: bytes) -> str:
    answer = client.post("/v1/jobs", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation-failed")
    return str(answer.json()["detail"])


def list_of(unit: str, number: int) -> bytes:
    return f"[{','.join([unit] * number)}]{' ' * LONG_BYTES}".encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "most"),
    [
        ("[]", MOST_ARRAYS - 1),
        ("{}", MOST_OBJECTS),
        ('"a"', MOST_TEXTS),
        (r'"\\"', MOST_TEXTS),
        (r'{"\"": [], "\\": "]"}', MOST_ARRAYS - 1),
    ],
)
def test_a_body_of_more_parts_than_anything_has_is_not_parsed(
    client: TestClient, unit: str, most: int
) -> None:
    # What is parsed is told to be no object.
    assert "at most" not in refusal(client, list_of(unit, most))
    assert "at most" in refusal(client, list_of(unit, most + 1))


def test_brackets_within_texts_open_nothing(client: TestClient) -> None:
    unit = json.dumps("{[" * (MOST_OBJECTS // 50) + '"' + "\\")
    assert "at most" not in refusal(client, list_of(unit, 100))


@pytest.mark.parametrize("padding", [0, LONG_BYTES])
def test_two_fields_of_one_name_are_refused_instead_of_one_dropped(
    client: TestClient, padding: int
) -> None:
    body = (
        b'{"kind": "estimation", "seed": 1e999, "model": {"k": 1, "\\u006b": 2}}' + b" " * padding
    )
    assert 'two fields "k"' in refusal(client, body)
    long = b'{"%b": 1, "%b": 2}' % (b"x" * 10_000, b"x" * 10_000)
    assert len(refusal(client, long)) < 200


@pytest.mark.parametrize("padding", [0, LONG_BYTES])
@pytest.mark.parametrize("body", [b'{"kind": "no such"}', b'{"kind": ', b'{"a": 1, "a": 2}'])
def test_a_body_is_parsed_once_whatever_it_is(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, body: bytes, padding: int
) -> None:
    parsed = []
    parse = json.loads

    def parse_and_note(text: Any, **options: Any) -> Any:
        if isinstance(text, bytes) and text.startswith(body):
            parsed.append(text)
        return parse(text, **options)

    monkeypatch.setattr(json, "loads", parse_and_note)
    refusal(client, body + b" " * padding)
    assert len(parsed) == 1


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"seed": ' + b"1" * 10_000 + b"}", b'{"a": 1, "a"']
)
def test_what_cannot_be_read_is_told_by_who_reads_it(client: TestClient, body: bytes) -> None:
    assert "two fields" not in refusal(client, body)


def test_a_body_of_other_than_utf_8_is_refused(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        assert "UTF-8" in refusal(client, "[]".encode(encoding))
    # The parser would see no text where the count does, and the other way round.
    monkeypatch.setattr(json_route, "LONG_BYTES", 0)
    assert "UTF-8" in refusal(client, f'"\u2200{"[]" * 10_000}"'.encode("utf-16"))

"""JSON bodies are bounded in what they hold, before Python makes all of it."""

import json

import pytest
from fastapi.testclient import TestClient

from service import json_route
from service.json_route import LONG_BYTES, MOST_ARRAYS, MOST_OBJECTS, MOST_TEXTS

JSON = {"Content-Type": "application/json"}


def refusal(client: TestClient, body: bytes) -> str:
    answer = client.post("/v1/jobs", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation-failed")
    return str(answer.json()["detail"])


def list_of(unit: str, number: int) -> bytes:
    return f"[{','.join([unit] * number)}]{' ' * LONG_BYTES}".encode()


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


def test_a_body_of_other_than_utf_8_is_refused(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        assert "UTF-8" in refusal(client, "[]".encode(encoding))
    # The parser would see no text where the count does, and the other way round.
    monkeypatch.setattr(json_route, "LONG_BYTES", 0)
    assert "UTF-8" in refusal(client, f'"\u2200{"[]" * 10_000}"'.encode("utf-16"))

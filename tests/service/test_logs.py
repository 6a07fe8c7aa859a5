"""Logs are JSON, one line an event, which names its request and job and no secret."""

import json
import logging
import os
import sys
from typing import Any

import pytest

from service import logs


def line_of(message: str, *arguments: object, **extra: object) -> str:
    record = logging.LogRecord(
        "service", logging.ERROR, __file__, 1, message, arguments, sys.exc_info()
    )
    vars(record).update(extra)
    return logs.formatter("api").format(record)


def event_of(message: str, *arguments: object, **extra: object) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(line_of(message, *arguments, **extra))
    return event


def test_event_is_one_line_of_json_with_its_request() -> None:
    try:
        raise ValueError("over\ntwo lines")
    except ValueError:
        line = line_of("it %s", "failed", request_id="abc")
    assert "\n" not in line
    event = json.loads(line)
    assert (event["event"], event["level"], event["logger"]) == ("it failed", "error", "service")
    assert (event["process"], event["pid"]) == ("api", os.getpid())
    assert event["request_id"] == "abc"
    assert "two lines" in event["exception"]
    assert event["timestamp"].endswith("Z")


def test_what_is_bound_is_in_every_event_until_the_end_of_the_body() -> None:
    with logs.bound(job_id="job_1", request_id="abc"):
        event = event_of("progress")
        with logs.bound(attempt=2):
            assert event_of("progress")["attempt"] == 2
    assert (event["job_id"], event["request_id"]) == ("job_1", "abc")
    assert "job_id" not in event_of("idle")


def test_fields_that_nobody_declared_stay_out() -> None:
    assert "headers" not in event_of("request", headers={"cookie": "1"})


@pytest.mark.parametrize(
    ("message", "rest"),
    [
        ("redis://:hunter2@broker:6379/0", "redis://:***@broker:6379/0"),
        ("postgresql+psycopg://vnce:hunter2@host/vnce", "postgresql+psycopg://vnce:***@host/vnce"),
        ("Authorization: Bearer hunter2", "Authorization: Bearer ***"),
        ("the key vnce_0123456789ab_hunter2-X_Y", "the key vnce_0123456789ab_***"),
        ("{'authorization': 'Basic hunter2=='}", "{'authorization': 'Basic ***'}"),
    ],
)
def test_passwords_and_tokens_are_blotted_out(message: str, rest: str) -> None:
    assert event_of("%s", message)["event"] == rest
    try:
        raise RuntimeError(message)
    except RuntimeError:
        line = line_of("failed")
    assert "hunter2" not in line
    assert rest in json.loads(line)["exception"]


@pytest.mark.parametrize(
    "message",
    ["listening on http://127.0.0.1:8000/docs", "see https://example.org/a@b", "basic_format"],
)
def test_addresses_without_secrets_stay_as_they_are(message: str) -> None:
    assert event_of(message)["event"] == message

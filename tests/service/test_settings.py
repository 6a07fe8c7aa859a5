"""A setting that cannot be is refused at the start, and not told to the log."""

import os
import subprocess
import sys

import pytest
from pydantic import ValidationError

from service.settings import Settings
from worker.settings import WorkerSettings


@pytest.mark.parametrize("kind", [Settings, WorkerSettings])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("key_secret", "hunter2"),  # too short
        ("broker_url", "amqp://user:hunter2@broker"),
        ("lease_seconds", "hunter2"),
    ],
)
def test_a_setting_that_cannot_be_is_named_and_not_shown(
    kind: type[Settings], name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"VNCE_{name.upper()}", value)
    with pytest.raises(ValidationError) as refused:
        kind()
    assert name in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["service"],
        ["service", "migrate"],
        ["service", "keys", "list"],
        ["service", "expire", "90"],
        ["service", "quota"],
        ["service", "backup", "never.dump"],
        ["worker"],
        ["worker.dispatcher"],
    ],
)
def test_a_command_says_which_variables_are_wrong_and_ends(command: list[str]) -> None:
    environment = {**os.environ, "VNCE_MAX_CELLS": "-5", "VNCE_LEASE_SECONDS": "hunter2"}
    ended = subprocess.run(
        [sys.executable, "-m", *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [
        "These settings cannot be used.",
        "VNCE_MAX_CELLS: Input should be greater than 0",
        "VNCE_LEASE_SECONDS: Input should be a valid number, unable to parse string as a number",
    ]


@pytest.mark.parametrize("scheme", ["redis", "rediss", "unix"])
def test_every_kind_of_broker_url_is_taken(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VNCE_BROKER_URL", f"{scheme}://broker/0")
    assert Settings().broker_url == f"{scheme}://broker/0"


@pytest.mark.parametrize("wrong", [{"lease": "1"}, {"lease": "5", "heartbeat": "7"}])
def test_a_lease_that_ends_before_the_first_heartbeat_is_refused(
    wrong: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in wrong.items():
        monkeypatch.setenv(f"VNCE_{name.upper()}_SECONDS", seconds)
    with pytest.raises(SystemExit) as ended:
        WorkerSettings.from_environment()
    told = "VNCE_HEARTBEAT_SECONDS: Input should be less than VNCE_LEASE_SECONDS"
    assert str(ended.value).splitlines()[1:] == [told]


def test_a_lease_may_be_just_longer_than_a_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VNCE_LEASE_SECONDS", "1.01")
    assert Settings.from_environment().lease_seconds == 1.01

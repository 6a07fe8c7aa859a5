"""A setting that cannot be is refused at the start, and not told to the log."""

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
        ("silence_seconds", "hunter2"),
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


@pytest.mark.parametrize("scheme", ["redis", "rediss", "unix"])
def test_every_kind_of_broker_url_is_taken(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VNCE_BROKER_URL", f"{scheme}://broker/0")
    assert Settings().broker_url == f"{scheme}://broker/0"

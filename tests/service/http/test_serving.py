"""What a process that serves the API asks of its system."""

import resource

import pytest

from service.http.serving import allow_open_files
from service.settings import Settings


@pytest.mark.parametrize(
    ("hard", "set_to", "is_told"),
    [(10_000, 500, False), (resource.RLIM_INFINITY, 500, False), (400, 400, True)],
)
def test_open_files_are_allowed_as_far_as_the_system_lets_and_it_is_told_if_that_is_too_few(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    hard: int,
    set_to: int,
    is_told: bool,
) -> None:
    limits = []
    monkeypatch.setattr("resource.getrlimit", lambda kind: (100, hard))
    monkeypatch.setattr("resource.setrlimit", lambda kind, both: limits.append(both))
    allow_open_files(Settings(max_connections=150))
    assert limits == [(set_to, hard)]
    assert ("VNCE_MAX_CONNECTIONS" in caplog.text) == is_told


def test_a_limit_that_suffices_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []
    monkeypatch.setattr("resource.getrlimit", lambda kind: (10_000, 10_000))
    monkeypatch.setattr("resource.setrlimit", lambda kind, both: limits.append(both))
    allow_open_files(Settings(max_connections=150))
    assert limits == []

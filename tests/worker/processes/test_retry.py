import itertools

import pytest
from sqlalchemy.exc import IntegrityError, OperationalError

from worker.processes.retry import LONGEST_PAUSE_SECONDS, retry_while_away


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace the clock by one that only moves when someone sleeps."""
    times = [0.0]
    monkeypatch.setattr("worker.processes.retry.time.monotonic", lambda: times[-1])
    monkeypatch.setattr(
        "worker.processes.retry.time.sleep", lambda pause: times.append(times[-1] + pause)
    )
    return times


class Flaky:
    """Fails as an absent database does, for the first calls."""

    def __init__(self, num_failures: int) -> None:
        self.num_calls = 0
        self._num_failures = num_failures

    def __call__(self) -> str:
        self.num_calls += 1
        if self.num_calls <= self._num_failures:
            raise OperationalError("SELECT 1", {}, ConnectionRefusedError())
        return "done"


def test_an_absent_database_is_waited_for() -> None:
    operation = Flaky(num_failures=2)
    assert retry_while_away(operation, seconds=10) == "done"
    assert operation.num_calls == 3


def test_the_databases_error_is_raised_before_the_stated_time_is_over(clock: list[float]) -> None:
    with pytest.raises(OperationalError):
        retry_while_away(Flaky(num_failures=1000), seconds=30)
    assert 30 - LONGEST_PAUSE_SECONDS <= clock[-1] <= 30


def test_pauses_grow_but_stay_short(clock: list[float]) -> None:
    retry_while_away(Flaky(num_failures=20), seconds=30)
    pauses = [after - before for before, after in itertools.pairwise(clock)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == pytest.approx(LONGEST_PAUSE_SECONDS)


def test_a_refusal_is_not_tried_again() -> None:
    calls = []

    def refused() -> None:
        calls.append(1)
        raise IntegrityError("INSERT", {}, ValueError())

    with pytest.raises(IntegrityError):
        retry_while_away(refused, seconds=10)
    assert len(calls) == 1


def test_a_full_disk_is_not_waited_for(clock: list[float]) -> None:
    def full() -> None:
        raise OperationalError("INSERT", {}, Exception("database or disk is full"))

    with pytest.raises(OperationalError):
        retry_while_away(full, seconds=10)
    assert clock == [0.0]

"""Counters only grow, whoever counts and whoever tidies up at the same time."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from service.db import counters
from service.db.counters import Count, Counter, CounterRecord
from service.db.database import Database


def add(database: Database, *counts: Count) -> None:
    with database.transaction() as session:
        counters.add(session, counts)


def attempts(database: Database) -> dict[tuple[str, ...], float]:
    with database.snapshot() as session:
        return counters.totals(session)[Counter.ATTEMPTS]


def num_rows(database: Database) -> int:
    with database.snapshot() as session:
        return session.scalar(select(func.count()).select_from(CounterRecord)) or 0


def compact(database: Database) -> None:
    with database.transaction() as session:
        counters.compact(session)


def test_nothing_counted_is_nothing_told(database: Database) -> None:
    add(database)
    with database.snapshot() as session:
        assert all(totals == {} for totals in counters.totals(session).values())


def test_amounts_are_added_up_by_labels(database: Database) -> None:
    quote = ('a "quoted"', "kind")
    add(database, Count(Counter.ATTEMPTS, ("a",)), Count(Counter.ATTEMPTS, ("a",)))
    add(database, Count(Counter.ATTEMPTS, ("a",), 2.5), Count(Counter.ATTEMPTS, quote))
    add(database, Count(Counter.JOBS_SUBMITTED, ("a",)))
    assert attempts(database) == {("a",): 4.5, quote: 1.0}


def test_what_is_rolled_back_was_not_counted(database: Database) -> None:
    def fail() -> None:
        with database.transaction() as session:
            counters.add(session, [Count(Counter.ATTEMPTS, ("a",))])
            raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        fail()
    assert attempts(database) == {}


def test_compacting_makes_rows_few_and_changes_no_sum(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counters, "COMPACT_ABOVE", 4)
    for label in "ababa":
        add(database, Count(Counter.ATTEMPTS, (label,)))
    compact(database)
    assert num_rows(database) == 2
    compact(database)
    assert attempts(database) == {("a",): 3.0, ("b",): 2.0}


def test_few_rows_are_left_as_they_are(database: Database) -> None:
    for _ in range(3):
        add(database, Count(Counter.ATTEMPTS, ("a",)))
    compact(database)
    assert num_rows(database) == 3


def test_counting_and_compacting_at_once_loses_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counters, "COMPACT_ABOVE", 0)
    begin = threading.Barrier(6)

    def count(_: int) -> None:
        begin.wait()
        for _ in range(10):
            add(database, Count(Counter.ATTEMPTS, ("a",)))

    def tidy(_: int) -> None:
        begin.wait()
        for _ in range(10):
            compact(database)

    with ThreadPoolExecutor(6) as pool:
        jobs = [pool.submit(count if i % 2 else tidy, i) for i in range(6)]
        for job in jobs:
            job.result()
    assert attempts(database) == {("a",): 30.0}

"""Counters in the database, which outlast processes and the jobs that they counted.

A count is a row of its own, inserted in the transaction that does what is counted: no two
transactions wait for each other, as they would for one row that all of them update. What counts is
the sum; `compact` replaces many rows by their sum.
"""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import String, delete, func, insert, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.db.database import Record

# Fewer rows than this are summed in a moment when they are read.
COMPACT_ABOVE = 1000


class Counter(StrEnum):
    """What is counted."""

    JOBS_SUBMITTED = "jobs-submitted"
    ATTEMPTS = "attempts"
    LEASES_LOST = "leases-lost"
    JOBS_FINISHED = "jobs-finished"
    # A histogram: how many fits fell between a bucket's bound and the one below, and their sum.
    FIT_BUCKET = "fit-bucket"
    FIT_SECONDS = "fit-seconds"


class CounterRecord(Record):
    """An amount by which a counter has grown."""

    __tablename__ = "counters"
    # An id is never given twice, so that compacting cannot hit a later count.
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(String(32))
    # The values of the counter's labels, as a JSON array.
    labels: Mapped[str] = mapped_column(String(200))
    amount: Mapped[float]


class Count(NamedTuple):
    """By how much which counter grows."""

    counter: Counter
    labels: tuple[str, ...]
    amount: float = 1.0


def add(session: Session, counts: Sequence[Count]) -> None:
    """Let counters grow, in the session's transaction."""
    amounts: dict[tuple[str, str], float] = {}
    for counter, labels, amount in counts:
        key = counter, json.dumps(labels)
        amounts[key] = amounts.get(key, 0.0) + amount
    _insert(session, amounts)


def totals(session: Session) -> dict[Counter, dict[tuple[str, ...], float]]:
    """Return every counter's value by its labels."""
    found: dict[Counter, dict[tuple[str, ...], float]] = {counter: {} for counter in Counter}
    rows = session.execute(
        select(CounterRecord.name, CounterRecord.labels, func.sum(CounterRecord.amount)).group_by(
            CounterRecord.name, CounterRecord.labels
        )
    )
    for name, labels, amount in rows:
        found[Counter(name)][tuple(json.loads(labels))] = amount
    return found


def compact(session: Session) -> None:
    """Replace the rows by their sums once there are many; two that do so at once do no harm."""
    num_rows = session.scalar(select(func.count()).select_from(CounterRecord)) or 0
    if num_rows <= COMPACT_ABOVE:
        return
    removed = session.execute(
        delete(CounterRecord).returning(
            CounterRecord.name, CounterRecord.labels, CounterRecord.amount
        )
    )
    sums: dict[tuple[str, str], float] = {}
    for name, labels, amount in removed:
        sums[name, labels] = sums.get((name, labels), 0.0) + amount
    _insert(session, sums)


def _insert(session: Session, amounts: Mapping[tuple[str, str], float]) -> None:
    rows = [
        {"name": name, "labels": labels, "amount": amount}
        for (name, labels), amount in amounts.items()
    ]
    if rows:
        session.execute(insert(CounterRecord), rows)

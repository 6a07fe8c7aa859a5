"""What is counted of jobs, each in the transaction in which it happens."""

from bisect import bisect_left
from collections.abc import Collection, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.db import counters
from service.db.counters import Count, Counter
from service.jobs.records import JobRecord, JobState
from service.jobs.vocabulary import JobKind

# Upper bounds of the histogram's buckets, in seconds: fits take from a blink to the time limit.
FIT_BOUNDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 21600.0)
BEYOND = "+Inf"
# SQLite and PostgreSQL bound the parameters of a statement.
_CHUNK = 1000


def submitted(session: Session, kinds: Sequence[str]) -> None:
    """Count new jobs, parts of others included, by their kinds."""
    counters.add(session, [Count(Counter.JOBS_SUBMITTED, (kind,)) for kind in kinds])


def claimed(session: Session, kind: str) -> None:
    """Count an attempt."""
    counters.add(session, [Count(Counter.ATTEMPTS, (kind,))])


def lost(session: Session, outcome: str, number: int) -> None:
    """Count leases that ran out, by what became of their jobs."""
    if number:
        counters.add(session, [Count(Counter.LEASES_LOST, (outcome,), number)])


def finished(session: Session, job_ids: Collection[str]) -> None:
    """Count jobs that have just reached a final state; of fits that succeeded also the time.

    The time is that of the attempt that succeeded, from its start to its end.
    """
    ids = list(job_ids)
    for start in range(0, len(ids), _CHUNK):
        rows = session.execute(
            select(
                JobRecord.kind,
                JobRecord.state,
                JobRecord.spec,
                JobRecord.started_at,
                JobRecord.finished_at,
            ).where(JobRecord.id.in_(ids[start : start + _CHUNK]))
        ).all()
        counts = [Count(Counter.JOBS_FINISHED, (row.kind, row.state)) for row in rows]
        for row in rows:
            if row.kind == JobKind.ESTIMATION and row.state == JobState.SUCCEEDED:
                seconds = max(row.finished_at - row.started_at, 0.0)
                counts += _fit(row.spec["model"]["kind"], row.spec["estimator"]["kind"], seconds)
        counters.add(session, counts)


def _fit(model: str, estimator: str, seconds: float) -> list[Count]:
    place = bisect_left(FIT_BOUNDS, seconds)
    bound = str(FIT_BOUNDS[place]) if place < len(FIT_BOUNDS) else BEYOND
    return [
        Count(Counter.FIT_BUCKET, (model, estimator, bound)),
        Count(Counter.FIT_SECONDS, (model, estimator), seconds),
    ]

"""What the database knows, read from it at each scrape.

Every API process therefore tells the same: of these take the largest over processes, not the sum.
Counters live in the database and outlast processes.
"""

import importlib.metadata
from collections.abc import Iterator
from dataclasses import fields

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from service.db import counters
from service.db.counters import Counter
from service.db.database import Database
from service.jobs import queue
from service.jobs.job_counts import BEYOND, FIT_BOUNDS
from service.jobs.queue import Queue
from service.jobs.reaping import Reaped
from service.jobs.records import FINAL
from service.jobs.vocabulary import JobKind
from service.monitoring import heartbeats, readiness
from service.monitoring.heartbeats import ProcessStatus
from service.monitoring.readiness import BrokerState, DatabaseState
from service.monitoring.records import ProcessKind
from service.settings import Settings

Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
Totals = dict[tuple[str, ...], float]

# Counters by their names in the database: name, description and labels for Prometheus.
_COUNTERS = {
    Counter.JOBS_SUBMITTED: (
        "vnce_jobs_submitted",
        "Jobs made, parts of others included.",
        ["kind"],
    ),
    Counter.ATTEMPTS: ("vnce_job_attempts", "Times that a worker has taken a job.", ["kind"]),
    Counter.LEASES_LOST: (
        "vnce_leases_lost",
        "Jobs whose worker was lost, by what became of them.",
        ["outcome"],
    ),
    Counter.JOBS_FINISHED: (
        "vnce_jobs_finished",
        "Jobs that have reached a final state.",
        ["kind", "state"],
    ),
}
# Told before anything has happened: Prometheus sees no growth in a series that begins at 1.
_OF_KINDS: Totals = {(kind,): 0.0 for kind in JobKind}
_ZEROS: dict[Counter, Totals] = {
    Counter.JOBS_SUBMITTED: _OF_KINDS,
    Counter.ATTEMPTS: _OF_KINDS,
    Counter.LEASES_LOST: {(outcome.name,): 0.0 for outcome in fields(Reaped)},
    Counter.JOBS_FINISHED: {(kind, state): 0.0 for kind in JobKind for state in FINAL},
}


class DatabaseCollector(Collector):
    """Reads queue, processes and counters; without a database only that there is none."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings

    def collect(self) -> Iterator[Family]:
        """Yield everything as it is now."""
        ready = readiness.look(self._database, self._settings)
        yield _build_info()
        yield GaugeMetricFamily(
            "vnce_database_up",
            "1 if the database answers and has this version's tables.",
            value=float(ready.database is DatabaseState.CURRENT),
        )
        yield GaugeMetricFamily(
            "vnce_broker_up",
            "1 if the broker answers and takes messages.",
            value=float(ready.broker is BrokerState.REACHABLE),
        )
        if ready.database is not DatabaseState.CURRENT:
            return
        try:
            with self._database.snapshot() as session:
                waiting = queue.look(session, self._settings.max_running_jobs)
                seen = heartbeats.processes(session)
                totals = counters.totals(session)
        except SQLAlchemyError:
            return  # it went away a moment ago; the next scrape says so
        yield from _queue(waiting)
        yield from _processes(seen)
        for counter, (name, text, labels) in _COUNTERS.items():
            family = CounterMetricFamily(name, text, labels=labels)
            for values, amount in sorted((_ZEROS[counter] | totals[counter]).items()):
                family.add_metric(list(values), amount)
            yield family
        yield _fit_seconds(totals[Counter.FIT_BUCKET], totals[Counter.FIT_SECONDS])


def _build_info() -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "vnce_build_info", "Always 1; the version is a label.", None, ["version"]
    )
    family.add_metric([importlib.metadata.version("vnce")], 1.0)
    return family


def _queue(seen: Queue) -> Iterator[Family]:
    jobs = GaugeMetricFamily(
        "vnce_jobs",
        "Jobs that have not ended: queued, running in a worker's hands, or split into parts.",
        labels=["state"],
    )
    jobs.add_metric(["queued"], seen.queued)
    jobs.add_metric(["running"], seen.running)
    jobs.add_metric(["split"], seen.split)
    yield jobs
    yield GaugeMetricFamily(
        "vnce_oldest_queued_job_seconds",
        "How long the longest waiting job has waited.",
        value=seen.oldest_queued_seconds,
    )
    yield GaugeMetricFamily(
        "vnce_expired_leases",
        "Running jobs whose worker no longer renews its lease and that nobody has seen to.",
        value=seen.expired_leases,
    )
    yield GaugeMetricFamily(
        "vnce_outbox_messages", "Wake-up messages that wait to be sent.", value=seen.outbox
    )
    yield GaugeMetricFamily(
        "vnce_oldest_outbox_message_seconds",
        "Age of the oldest of them.",
        value=seen.oldest_outbox_seconds,
    )


def _processes(seen: list[ProcessStatus]) -> Iterator[Family]:
    live = [process for process in seen if process.is_live]
    number = GaugeMetricFamily(
        "vnce_processes", "Workers and dispatchers that are live.", labels=["kind"]
    )
    for kind in ProcessKind:
        number.add_metric([kind], sum(process.identity.kind is kind for process in live))
    yield number
    labels = ["kind", "host", "pid"]
    age = GaugeMetricFamily(
        "vnce_process_heartbeat_age_seconds",
        "How long ago a worker or dispatcher last told of itself.",
        labels=labels,
    )
    memory = GaugeMetricFamily(
        "vnce_process_memory_bytes",
        "Resident memory of a live worker or dispatcher.",
        labels=labels,
    )
    for process in seen:
        which = [process.identity.kind, process.identity.host, str(process.identity.pid)]
        if process.is_live:
            age.add_metric(which, process.age_seconds)
            if process.memory_bytes is not None:
                memory.add_metric(which, process.memory_bytes)
    yield age
    yield memory


def _fit_seconds(buckets: Totals, sums: Totals) -> HistogramMetricFamily:
    family = HistogramMetricFamily(
        "vnce_fit_seconds",
        "Seconds of the attempt that ended an estimation well, from its start to its end.",
        labels=["model", "estimator"],
    )
    bounds = [*map(str, FIT_BOUNDS), BEYOND]
    for (model, estimator), seconds in sorted(sums.items()):
        cumulative: list[tuple[str, float]] = []
        number = 0.0
        for bound in bounds:
            number += buckets.get((model, estimator, bound), 0.0)
            cumulative.append((bound, number))
        family.add_metric([model, estimator], cumulative, seconds)
    return family

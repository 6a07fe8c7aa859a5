"""Short jobs in a row: how fast they drain, and what the processes and the database keep."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

import httpx
import psutil
from sqlalchemy import func, select

from benchmarks.service.figures import Figure
from benchmarks.service.stack import Stack, wait_for
from benchmarks.service.tables import SHORT_JOB
from service.datasets.options import ReadLimits
from service.db.counters import COMPACT_ABOVE, CounterRecord
from service.db.database import Record
from service.jobs import queue
from service.jobs.records import CheckpointRecord, JobRecord, JobState
from service.jobs.specs.simulation import SimulationSpec
from worker.jobs.simulation import simulate
from worker.settings import WorkerSettings

BATCH = 1_000
SUBMITTERS = 8
# What is left after subtracting the work must allow for so many jobs a second.
LEAST_PER_SECOND = 50
# Allocators keep what they have had; a leak of 1 KB a job would be 4 MB in 4,000 jobs.
MOST_GROWTH_MB = 4


@dataclass(frozen=True)
class Kept:
    """What the stack holds at a moment."""

    megabytes: dict[str, float]
    num_processes: int
    num_open_files: int
    outbox: int
    checkpoints: int
    counters: int


def measure(
    name: str,
    open_stack: Callable[[], AbstractContextManager[Stack]],
    *,
    num_workers: int,
    num_batches: int,
) -> Iterator[Figure]:
    """Yield the rate of the first batch of 1,000, and what has grown from it to the last."""
    work_seconds = _work_seconds()
    with open_stack() as stack:
        url = stack.start_api()
        for number in range(num_workers):
            stack.start_worker(f"worker-{number + 1}")
        submit([url], stack.token, BATCH)
        stack.start_dispatcher()
        wait_until_drained(stack)
        rate = BATCH / drain_seconds(stack)
        first = _kept(stack)
        for _ in range(num_batches - 1):
            submit([url], stack.token, BATCH)
            wait_until_drained(stack)
        last = _kept(stack)
    section = f"{BATCH:,} short jobs, {num_workers} workers, {name}"
    yield Figure(section, "jobs", rate, "/s")
    yield Figure(section, "work of one job, alone", 1e3 * work_seconds, "ms")
    rest = 1 / rate - work_seconds / num_workers
    yield Figure(section, "jobs apart from their work", 1 / rest, "/s", f">= {LEAST_PER_SECOND}")
    if num_batches > 1:
        yield from _growth(f"{num_batches * BATCH:,} jobs in a row, {name}", first, last)


def submit(urls: Sequence[str], token: str | None, number: int) -> None:
    """Submit short jobs from several threads, to each API process in turn."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}

    def send(first: int) -> None:
        with httpx.Client(headers=headers, trust_env=False, timeout=60) as client:
            for position in range(first, number, SUBMITTERS):
                url = urls[position % len(urls)]
                client.post(f"{url}/v1/jobs", json=SHORT_JOB).raise_for_status()

    with ThreadPoolExecutor(SUBMITTERS) as pool:
        list(pool.map(send, range(SUBMITTERS)))


def wait_until_drained(stack: Stack) -> None:
    """Wait until every job has ended; raise unless all have succeeded."""

    def counts() -> dict[JobState, int] | None:
        with stack.database.snapshot() as session:
            rows = session.execute(select(JobRecord.state, func.count()).group_by(JobRecord.state))
            found = {JobState(state): number for state, number in rows}
        return found if all(state.is_terminal for state in found) else None

    ended = wait_for(counts, "the queue to drain", pause=0.5)
    if set(ended) != {JobState.SUCCEEDED}:
        raise RuntimeError(f"not all jobs have succeeded: {ended}")


def drain_seconds(stack: Stack) -> float:
    """Return the time from the first job's start to the last one's end."""
    with stack.database.snapshot() as session:
        times = select(func.max(JobRecord.finished_at), func.min(JobRecord.started_at))
        last, first = session.execute(times).one()
    assert last is not None  # the queue has drained
    assert first is not None
    return last - first


def _work_seconds() -> float:
    """Return how long the work of a short job takes by itself."""
    name = "work"
    spec = SimulationSpec.model_validate({**SHORT_JOB, "name": name})
    limits = ReadLimits.from_settings(WorkerSettings())
    times = []
    for _ in range(30):
        began = time.perf_counter()
        simulate(spec, limits, lambda step: False)
        times.append(time.perf_counter() - began)
    # The least, since all that is not work only adds to it.
    return min(times)


def _kept(stack: Stack) -> Kept:
    processes = {name: psutil.Process(p.pid) for name, p in stack.processes.items()}
    family = {
        name: [process, *process.children(recursive=True)] for name, process in processes.items()
    }
    with stack.database.snapshot() as session:

        def num_rows(record: type[Record]) -> int:
            return session.scalar(select(func.count()).select_from(record)) or 0

        return Kept(
            megabytes={
                name: process.memory_info().rss / 1e6 for name, process in processes.items()
            },
            num_processes=sum(len(members) for members in family.values()),
            num_open_files=sum(
                process.num_fds() for members in family.values() for process in members
            ),
            outbox=queue.look(session, None).outbox,
            checkpoints=num_rows(CheckpointRecord),
            counters=num_rows(CounterRecord),
        )


def _growth(section: str, first: Kept, last: Kept) -> Iterator[Figure]:
    for name, megabytes in first.megabytes.items():
        grown = last.megabytes[name] - megabytes
        yield Figure(section, f"memory of {name} after {BATCH:,}", megabytes, "MB")
        if name != "broker":  # its log of what it was told is rewritten from time to time
            yield Figure(section, f"{name} has grown by", grown, "MB", f"<= {MOST_GROWTH_MB}")
    yield Figure(section, "processes more", last.num_processes - first.num_processes, "", "<= 0")
    # A worker's process that is being replaced may have a few open for a moment.
    yield Figure(section, "open files more", last.num_open_files - first.num_open_files, "")
    yield Figure(section, "messages left", last.outbox, "", "<= 0")
    yield Figure(section, "checkpoints left", last.checkpoints, "", "<= 0")
    # They are summed once there are many, at the dispatcher's next round.
    yield Figure(section, "rows of counters", last.counters, "", f"<= {2 * COMPACT_ABOVE}")

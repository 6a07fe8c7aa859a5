"""A long queue: its pages, and how fast the dispatcher sends it to the broker."""

import time
from collections.abc import Iterator

import httpx
import numpy as np
from sqlalchemy import update

from benchmarks.service.figures import Figure
from benchmarks.service.stack import Stack, on_sqlite
from benchmarks.service.tables import SHORT_JOB, estimation, upload
from service.jobs import planning, submission
from service.jobs.records import JobRecord, JobState
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.specs.simulation import SimulationSpec
from service.jobs.submission import SubmissionLimits, Submitter
from worker.dispatcher import Dispatcher
from worker.queue.celery_app import create_celery
from worker.settings import WorkerSettings

FEW = 10
NUM_TAGS = 20
JOBS_AT_ONCE = 500
MOST_MILLISECONDS = 100


def measure(num_jobs: int) -> Iterator[Figure]:
    """Yield the figures of a queue of so many jobs on SQLite; no worker runs."""
    section = f"{num_jobs:,} queued jobs"
    with on_sqlite() as stack:
        stack.start_api()
        dispatcher = _dispatcher(stack)
        datasets = [upload(stack.client(), 50, 5) for _ in range(2)]
        dispatcher.send_pending()  # connects to the broker
        few = [_dispatch(dispatcher, stack, datasets, FEW) for _ in range(5)]
        many = _dispatch(dispatcher, stack, datasets, num_jobs)
        _end_some(stack)
        filters: dict[str, dict[str, str]] = {
            "all": {},
            "queued": {"state": "queued"},
            "cancelled": {"state": "cancelled"},
            "of a kind": {"kind": "simulation"},
            "of a data set": {"dataset_id": datasets[0]},
            "of a tag": {"tag": "tag-3"},
            "of a tag that none has": {"tag": "none"},
        }
        for name, parameters in filters.items():
            times = _pages(stack, parameters)
            label = f"page of 50, {name}"
            yield Figure(section, f"{label}: median of {len(times)}", float(np.median(times)), "ms")
            yield Figure(section, f"{label}: slowest", max(times), "ms", f"<= {MOST_MILLISECONDS}")
        began = time.perf_counter()
        dispatcher.reap()
        yield Figure(section, "a round of the reaper", 1e3 * (time.perf_counter() - began), "ms")
    yield Figure(section, f"dispatch of {FEW}", float(np.median(few)), "/s")
    yield Figure(section, f"dispatch of {num_jobs:,}", many, "/s", f">= {np.median(few):.0f}")


def _dispatcher(stack: Stack) -> Dispatcher:
    settings = WorkerSettings(broker_url=stack.broker_url)
    return Dispatcher(stack.database, create_celery(settings), settings)


def _dispatch(dispatcher: Dispatcher, stack: Stack, datasets: list[str], number: int) -> float:
    """Queue so many jobs and return how many a second the dispatcher sends."""
    for first in range(0, number, JOBS_AT_ONCE):
        _queue(stack, datasets, range(first, min(first + JOBS_AT_ONCE, number)))
    began = time.perf_counter()
    while dispatcher.send_pending():
        pass
    return number / (time.perf_counter() - began)


def _queue(stack: Stack, datasets: list[str], numbers: range) -> None:
    """Submit jobs as the API does, in one transaction."""
    limits = SubmissionLimits(max_attempts=3, max_unfinished_jobs=10**9)
    submitter = Submitter(api_key_id=None, request_id=None)
    with stack.tenant_database.transaction() as session:
        for number in numbers:
            body: SimulationSpec | EstimationSpec
            tag = {"tag": f"tag-{number % NUM_TAGS}"}
            if number % 2:
                body = SimulationSpec.model_validate({**SHORT_JOB, **tag})
            else:
                fit = estimation(datasets[number // 2 % len(datasets)])
                body = EstimationSpec.model_validate({**fit, **tag})
            submission.store(session, planning.plan(session, body), limits, submitter)


def _end_some(stack: Stack) -> None:
    """Cancel every job of one tag, so that a filter by state has something to leave out."""
    with stack.tenant_database.transaction() as session:
        session.execute(
            update(JobRecord).where(JobRecord.tag == "tag-3").values(state=JobState.CANCELLED)
        )


def _pages(stack: Stack, parameters: dict[str, str]) -> list[float]:
    """Walk through a whole list; return the milliseconds that each of its pages took."""
    times = []
    cursor: str | None = None
    with httpx.Client(base_url=stack.url, trust_env=False) as client:
        client.get("/v1/jobs", params={"limit": 1})  # connects
        while True:
            wanted = parameters if cursor is None else {**parameters, "cursor": cursor}
            began = time.perf_counter()
            answer = client.get("/v1/jobs", params=wanted)
            times.append(1e3 * (time.perf_counter() - began))
            cursor = answer.raise_for_status().json()["next_cursor"]
            if cursor is None:
                return times

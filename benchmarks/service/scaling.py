"""Scaling out: two API processes and four workers over PostgreSQL and one broker."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import func, select

from benchmarks.service import wrk
from benchmarks.service.competitors import CONNECTIONS
from benchmarks.service.drain import BATCH, drain_seconds, submit, wait_until_drained
from benchmarks.service.figures import Figure
from benchmarks.service.stack import Stack, on_postgresql
from benchmarks.service.wrk import Load
from service.jobs.records import JobRecord
from service.jobs.result_records import ResultRecord

NUM_APIS = 2
NUM_WORKERS = 4


def measure(seconds: float) -> Iterator[Figure]:
    """Yield the rates, and what shows that each job was done once."""
    section = f"{NUM_APIS} API processes, {NUM_WORKERS} workers, PostgreSQL"
    with on_postgresql() as stack:
        urls = [stack.start_api(f"api-{number + 1}") for number in range(NUM_APIS)]
        for number in range(NUM_WORKERS):
            stack.start_worker(f"worker-{number + 1}")
        submit(urls, stack.token, BATCH)
        stack.start_dispatcher()
        wait_until_drained(stack)
        yield Figure(section, "jobs", BATCH / drain_seconds(stack), "/s")
        yield from _once(section, stack)
        with stack.database.snapshot() as session:
            some = session.scalars(select(JobRecord.id).limit(50)).all()
        load = Load("GET", [f"/v1/jobs/{job_id}" for job_id in some], CONNECTIONS // NUM_APIS)
        with ThreadPoolExecutor() as pool:
            polls = pool.map(lambda u: wrk.run(u, {"poll": load}, seconds, stack.token), urls)
            yield Figure(section, "poll", sum(poll["poll"].per_second for poll in polls), "/s")


def _once(section: str, stack: Stack) -> Iterator[Figure]:
    with stack.database.snapshot() as session:
        results = session.scalar(select(func.count()).select_from(ResultRecord))
        attempts = session.scalar(select(func.sum(JobRecord.attempt)))
    yield Figure(section, "jobs without a result", BATCH - (results or 0), "", "<= 0")
    yield Figure(section, "attempts beyond the first", (attempts or 0) - BATCH, "", "<= 0")

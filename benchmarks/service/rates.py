"""Requests a second of one API process, alone, mixed, and beside fits; others' for comparison."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from sqlalchemy import delete, update

from benchmarks.service import competitors, wrk
from benchmarks.service.competitors import CONNECTIONS
from benchmarks.service.figures import Figure
from benchmarks.service.stack import LOW_PRIORITY, Stack, wait_for
from benchmarks.service.tables import Json, estimation, long_estimation, upload
from benchmarks.service.wrk import Answered, Load
from service.clock import now
from service.jobs.records import JobRecord, JobState, OutboxRecord
from worker.client import Client

# Connections of each kind of request in the mixture; 64 together.
MIXTURE = {"submit": 16, "poll": 32, "result": 16}
NUM_POLLED = 50
# As many times pygeoapi's rate; beside fits half of it.
TARGETS = {"submit": 10.0, "poll": 2.0}
BESIDE_FITS = 0.5


@dataclass(frozen=True)
class Prepared:
    """What there is to be asked for."""

    job: Json
    job_paths: list[str]
    result_paths: list[str]
    dataset_id: str

    def load(self, kind: str, connections: int = CONNECTIONS) -> Load:
        """Return the load of one kind of request."""
        match kind:
            case "submit":
                return Load("POST", ["/v1/jobs"], connections, self.job)
            case "poll":
                return Load("GET", self.job_paths, connections)
            case _:
                return Load("GET", self.result_paths, connections)


def measure_competitors(pygeoapi_python: str | None, seconds: float) -> list[Figure]:
    """Return the rates of the baseline and of pygeoapi, the latter None where it is not given."""
    with competitors.baseline() as (url, loads):
        found = [
            _rate("baseline", kind, wrk.run(url, {kind: loads[kind]}, seconds)[kind])
            for kind in ("submit", "poll")
        ]
    if pygeoapi_python is None:
        return found + [Figure("pygeoapi", kind, None, "/s") for kind in ("submit", "poll")]
    with competitors.pygeoapi(pygeoapi_python) as (url, loads):
        # It reads all its jobs at each poll: the fewer it holds, the faster it is.
        fresh = wrk.run(url, {"poll": loads["poll"]}, seconds)["poll"]
        submit = wrk.run(url, {"submit": loads["submit"]}, seconds)["submit"]
        num_jobs = competitors.NUM_POLLED + submit.num_answers
        later = wrk.run(url, {"poll": loads["poll"]}, seconds)["poll"]
    return [
        *found,
        _rate("pygeoapi", f"poll, {competitors.NUM_POLLED} jobs stored", fresh),
        _rate("pygeoapi", "submit", submit),
        Figure("pygeoapi", "jobs stored when polled", num_jobs, ""),
        _rate("pygeoapi", "poll", later),
    ]


def measure(
    name: str,
    open_stack: Callable[[], AbstractContextManager[Stack]],
    pygeoapi: dict[str, float | None],
    seconds: float,
) -> Iterator[Figure]:
    """Yield the rates of one API process on a database, beside those of pygeoapi by kind."""
    with open_stack() as stack:
        prepared = prepare(stack)
        alone = {
            kind: wrk.run(stack.url, {kind: prepared.load(kind)}, seconds, stack.token)[kind]
            for kind in MIXTURE
        }
        mixed = wrk.run(
            stack.url,
            {kind: prepared.load(kind, number) for kind, number in MIXTURE.items()},
            seconds,
            stack.token,
        )
        beside = beside_fits(stack, prepared, seconds)
    for kind, answered in alone.items():
        yield from _figures(name, f"{kind}, {CONNECTIONS} connections", answered)
    for kind, answered in mixed.items():
        yield from _figures(name, f"{kind}, mixed, {MIXTURE[kind]} of {CONNECTIONS}", answered)
    for kind, answered in beside.items():
        yield from _figures(name, f"{kind}, beside two fits", answered)
    every = [*alone.values(), *mixed.values(), *beside.values()]
    yield Figure(name, "answers", sum(answered.num_answers for answered in every), "")
    yield Figure(name, "answers 5xx", sum(answered.num_5xx for answered in every), "", "<= 0")
    yield Figure(name, "answers 4xx", sum(answered.num_4xx for answered in every), "", "<= 0")
    broken = sum(answered.num_broken for answered in every)
    yield Figure(name, "broken connections", broken, "", "<= 0")
    for kind, target in TARGETS.items():
        theirs = pygeoapi[kind]
        for when, answered, share in (
            ("", alone[kind], 1.0),
            (" beside two fits", beside[kind], BESIDE_FITS),
        ):
            ratio = None if theirs is None else answered.per_second / theirs
            yield Figure(name, f"{kind}{when}", ratio, "x pygeoapi", f">= {target * share:g}")


def prepare(stack: Stack) -> Prepared:
    """Start the API, have a fit done by a worker, and leave jobs that wait; no worker runs then."""
    stack.start_api()
    client = stack.client()
    dataset_id = upload(client, 300, 10)
    job = estimation(dataset_id)
    stack.start_worker("worker")
    stack.start_dispatcher()
    done = client.submit(job)["id"]
    wait_for(lambda: client.job(done)["state"] == "succeeded", "a fit", pause=0.2)
    stack.stop("worker", "dispatcher")
    waiting = [client.submit(job)["id"] for _ in range(NUM_POLLED)]
    return Prepared(
        job=job,
        job_paths=[f"/v1/jobs/{job_id}" for job_id in waiting],
        result_paths=[f"/v1/jobs/{done}/result"],
        dataset_id=dataset_id,
    )


def beside_fits(stack: Stack, prepared: Prepared, seconds: float) -> dict[str, Answered]:
    """Return the rates of submit and poll while two workers fit at low priority."""
    client = stack.client()
    # What has been submitted so far is not to be run now.
    _cancel_waiting(stack)
    for name in ("fitting-1", "fitting-2"):
        stack.start_worker(name, prefix=LOW_PRIORITY)
    stack.start_dispatcher()
    wide = upload(client, 3000, 50)
    fits = [client.submit(long_estimation(wide))["id"] for _ in range(2)]
    for job_id in fits:
        is_fitting = partial(_is_fitting, client, job_id)
        wait_for(is_fitting, "a fit to run", pause=0.2)
    found = {
        kind: wrk.run(stack.url, {kind: prepared.load(kind)}, seconds, stack.token)[kind]
        for kind in TARGETS
    }
    for job_id in fits:
        assert client.job(job_id)["state"] == "running", client.job(job_id)
    return found


def _is_fitting(client: Client, job_id: str) -> bool:
    return client.job(job_id)["progress"] is not None


def _cancel_waiting(stack: Stack) -> None:
    """End all waiting jobs at once, so that workers are free for others."""
    with stack.tenant_database.transaction() as session:
        session.execute(
            update(JobRecord)
            .where(JobRecord.state == JobState.QUEUED)
            .values(state=JobState.CANCELLED, finished_at=now())
        )
        session.execute(delete(OutboxRecord))


def _rate(section: str, name: str, answered: Answered) -> Figure:
    return Figure(section, name, answered.per_second, "/s")


def _figures(section: str, name: str, answered: Answered) -> Iterator[Figure]:
    yield Figure(section, name, answered.per_second, "/s")
    yield Figure(section, f"{name}: median", answered.p50_ms, "ms")
    yield Figure(section, f"{name}: 99 of 100", answered.p99_ms, "ms")

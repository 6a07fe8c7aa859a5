"""Requests a second of one API process, alone, mixed and beside fits, in turns with others'."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from statistics import median

from sqlalchemy import update

from benchmarks.service import wrk
from benchmarks.service.competitors import CONNECTIONS, NUM_POLLED, PYGEOAPI, Other
from benchmarks.service.figures import Figure
from benchmarks.service.stack import LOW_PRIORITY, Stack, wait_for
from benchmarks.service.tables import Json, estimation, long_estimation, upload
from benchmarks.service.wrk import Answered, Load
from service.db.clock import now
from service.jobs.records import JobRecord, JobState
from worker.cli.client import Client

# Connections of each kind of request in the mixture; 64 together.
MIXTURE = {"submit": 16, "poll": 32, "result": 16}
# As many times pygeoapi's rate; beside fits half of it.
TARGETS = {"submit": 10.0, "poll": 2.0}
BESIDE_FITS = 0.5
OURS = "VNCE"
# In turns, so that what else the machine has to do concerns all alike.
NUM_ROUNDS = 2


@dataclass(frozen=True)
class Prepared:
    """What there is to be asked for."""

    job: Json
    job_paths: list[str]
    result_paths: list[str]

    def load(self, kind: str, connections: int = CONNECTIONS) -> Load:
        """Return the load of one kind of request."""
        match kind:
            case "submit":
                return Load("POST", ["/v1/jobs"], connections, self.job)
            case "poll":
                return Load("GET", self.job_paths, connections)
            case _:
                return Load("GET", self.result_paths, connections)


def measure(
    name: str,
    open_stack: Callable[[], AbstractContextManager[Stack]],
    others: Mapping[str, Other],
    num_stored: int,
    seconds: float,
) -> Iterator[Figure]:
    """Yield the rates of one API process on a database, and those of others in turns with it.

    At first `num_stored` jobs wait, as in the others' stores, and more are submitted as it goes.
    """
    with open_stack() as stack:
        prepared = prepare(stack, num_stored)
        rounds = [_round(stack, prepared, others, seconds) for _ in range(NUM_ROUNDS)]
        mixed = {kind: prepared.load(kind, connections) for kind, connections in MIXTURE.items()}
        every = [answered for one in rounds for answered in one[OURS].values()]
        result = wrk.run(stack.url, {"result": prepared.load("result")}, seconds, stack.token)
        met = wrk.run(stack.url, mixed, seconds, stack.token)
        _fit_in_the_background(stack)
        beside = [_round(stack, prepared, others, seconds) for _ in range(NUM_ROUNDS)]
    every += [*result.values(), *met.values()]
    every += [answered for one in beside for answered in one[OURS].values()]
    yield from _compared(name, "", rounds, 1.0)
    yield from _compared(name, ", beside two fits", beside, BESIDE_FITS)
    yield from _figures(name, "result", result["result"])
    for kind, answered in met.items():
        yield from _figures(name, f"{kind}, mixed, {MIXTURE[kind]} connections", answered)
    yield Figure(name, "answers", sum(answered.num_answers for answered in every), "")
    yield Figure(name, "answers 5xx", sum(answered.num_5xx for answered in every), "", "<= 0")
    yield Figure(name, "answers 4xx", sum(answered.num_4xx for answered in every), "", "<= 0")
    broken = sum(answered.num_broken for answered in every)
    yield Figure(name, "broken connections", broken, "", "<= 0")


def _round(
    stack: Stack, prepared: Prepared, others: Mapping[str, Other], seconds: float
) -> dict[str, dict[str, Answered]]:
    """Return what each server answered to each kind of request, one after the other."""
    found: dict[str, dict[str, Answered]] = {server: {} for server in (*others, OURS)}
    for kind in TARGETS:
        for server, (url, loads) in others.items():
            found[server][kind] = wrk.run(url, {kind: loads[kind]}, seconds)[kind]
        ours = wrk.run(stack.url, {kind: prepared.load(kind)}, seconds, stack.token)
        found[OURS][kind] = ours[kind]
    return found


def _compared(
    name: str, when: str, rounds: Sequence[Mapping[str, Mapping[str, Answered]]], share: float
) -> Iterator[Figure]:
    """Yield medians over the rounds, and the medians of the ratios within a round."""
    for kind, target in TARGETS.items():
        for server in rounds[0]:
            per_second = [one[server][kind].per_second for one in rounds]
            who = "" if server == OURS else f", {server}"
            yield Figure(name, f"{kind}{when}{who}", median(per_second), "/s")
        latest = rounds[-1][OURS][kind]
        yield Figure(name, f"{kind}{when}: median", latest.p50_ms, "ms")
        yield Figure(name, f"{kind}{when}: 99 of 100", latest.p99_ms, "ms")
        ratios = [
            one[OURS][kind].per_second / one[PYGEOAPI][kind].per_second
            for one in rounds
            # Beside fits it may answer nothing in so short a time.
            if PYGEOAPI in one and one[PYGEOAPI][kind].per_second > 0
        ]
        ratio = median(ratios) if ratios else None
        yield Figure(name, f"{kind}{when}", ratio, "x pygeoapi", f">= {target * share:g}")


def prepare(stack: Stack, num_stored: int = NUM_POLLED) -> Prepared:
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
    waiting = [client.submit(job)["id"] for _ in range(num_stored)]
    return Prepared(
        job=job,
        job_paths=[f"/v1/jobs/{job_id}" for job_id in waiting[:NUM_POLLED]],
        result_paths=[f"/v1/jobs/{done}/result"],
    )


def _fit_in_the_background(stack: Stack) -> None:
    """Let two workers fit at low priority from now on; what waits is not to be run first."""
    client = stack.client()
    _cancel_waiting(stack)
    for name in ("fitting-1", "fitting-2"):
        stack.start_worker(name, prefix=LOW_PRIORITY)
    stack.start_dispatcher()
    fit = long_estimation(upload(client, 3000, 50))
    for job_id in [client.submit(fit)["id"] for _ in range(2)]:
        is_fitting = partial(_is_fitting, client, job_id)
        wait_for(is_fitting, "a fit to run", pause=0.2)


def _is_fitting(client: Client, job_id: str) -> bool:
    return client.job(job_id)["progress"] is not None


def _cancel_waiting(stack: Stack) -> None:
    """End all waiting jobs at once, so that workers are free for others."""
    with stack.tenant_database.transaction() as session:
        session.execute(
            update(JobRecord)
            .where(JobRecord.state == JobState.QUEUED)
            .values(state=JobState.CANCELLED, finished_at=now(), send_after=None)
        )


def _figures(section: str, name: str, answered: Answered) -> Iterator[Figure]:
    yield Figure(section, name, answered.per_second, "/s")
    yield Figure(section, f"{name}: median", answered.p50_ms, "ms")
    yield Figure(section, f"{name}: 99 of 100", answered.p99_ms, "ms")

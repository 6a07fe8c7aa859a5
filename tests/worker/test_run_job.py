import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from sqlalchemy import event, func, select

from service.datasets.records import DatasetRecord
from service.db.database import Database
from service.http.problems import ProblemCode, problem_document
from service.jobs import leases
from service.jobs import repository as jobs
from service.jobs.leases import Claim
from service.jobs.records import JobRecord, JobState
from service.jobs.result_records import ArtefactRecord, EdgeRecord, ResultRecord
from service.jobs.specs.simulation import SimulationSpec
from service.results.outcome import Artefact, Outcome
from tests.service.jobs.messages import send, to_be_sent
from vnce_engine.runtime.reports import FitStep
from worker.jobs.estimation import EstimationRequest, OnStep, estimate
from worker.jobs.failures import FitCancelledError, JobFailedError
from worker.jobs.load_job import Work
from worker.jobs.load_job import load as load_work
from worker.run_job import run_job
from worker.settings import WorkerSettings

ReadJob = Callable[[str], JobRecord]
Run = Callable[..., None]
Estimate = Callable[[EstimationRequest, OnStep], Outcome]


@pytest.fixture
def run(database: Database, job_id: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the job here, with a quick lease keeper."""
    monkeypatch.setattr("worker.heartbeat.TICK_SECONDS", 0.01)
    quick = {"heartbeat_seconds": 0.02, "progress_seconds": 0.02, "cancel_grace_seconds": 60}

    def run_here(
        database: Database = database, estimate: Estimate = estimate, **options: Any
    ) -> None:
        def load(database: Database, claim: Claim, settings: WorkerSettings) -> Work:
            work = load_work(database, claim, settings)
            assert isinstance(work, partial)  # of `estimate`, and its request
            return partial(estimate, *work.args)

        run_job(job_id, database, WorkerSettings(**quick), load=load, **options)

    return run_here


def until_stopped(request: EstimationRequest, on_step: OnStep) -> Outcome:
    """Fit without end, as `estimate` does when it is told to stop."""
    for iteration in range(1000):
        if on_step(FitStep("fit", 0.5, iteration, None)):
            raise FitCancelledError
        time.sleep(0.01)
    raise AssertionError("nobody stopped the fit")


def num_rows(database: Database, record: type) -> int | None:
    with database.snapshot() as session:
        return session.scalar(select(func.count()).select_from(record))


@pytest.mark.slow
def test_a_job_runs_to_its_end_and_its_result_is_stored_with_it(
    run: Run, database: Database, job_id: str, read_job: ReadJob
) -> None:
    run()
    job = read_job(job_id)
    assert (job.state, job.attempt, job.error, job.lease_token) == ("succeeded", 1, None, None)
    with database.snapshot() as session:
        result = session.get(ResultRecord, job_id)
    assert result is not None
    assert result.document["names"] == ["a", "b", "c"]
    assert result.document["dataset"]["name"] == "three columns"
    assert num_rows(database, EdgeRecord) == 3


def test_a_message_for_a_job_that_has_ended_does_nothing(
    run: Run, job_id: str, read_job: ReadJob
) -> None:
    def refuse(request: EstimationRequest, on_step: OnStep) -> Outcome:
        raise JobFailedError(problem_document(ProblemCode.NON_FINITE_OBJECTIVE, "at iteration 3"))

    run(estimate=refuse)
    first_end = read_job(job_id).finished_at
    run(estimate=refuse)
    job = read_job(job_id)
    assert (job.state, job.attempt, job.finished_at) == ("failed", 1, first_end)


def test_two_workers_with_one_message_make_one_attempt(
    database: Database, run: Run, job_id: str, read_job: ReadJob
) -> None:
    runs: list[str] = []

    def count(request: EstimationRequest, on_step: OnStep) -> Outcome:
        runs.append(request.dataset.id)
        time.sleep(0.1)
        raise KeyError

    workers = [threading.Thread(target=run, kwargs={"estimate": count}) for _ in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(runs) == 1
    assert read_job(job_id).attempt == 1


def test_a_failure_of_the_fit_is_stored_as_its_problem(
    run: Run, job_id: str, read_job: ReadJob
) -> None:
    problem = problem_document(ProblemCode.NON_FINITE_OBJECTIVE, "Diverged; try a penalty.")

    def diverge(request: EstimationRequest, on_step: OnStep) -> Outcome:
        raise JobFailedError(problem)

    run(estimate=diverge)
    job = read_job(job_id)
    expected = problem.model_dump(mode="json") | {"instance": f"/v1/jobs/{job_id}"}
    assert (job.state, job.error) == ("failed", expected)


def test_a_mistake_of_ours_is_logged_in_full_and_told_without_its_insides(
    run: Run, job_id: str, read_job: ReadJob, caplog: pytest.LogCaptureFixture
) -> None:
    def crash(request: EstimationRequest, on_step: OnStep) -> Outcome:
        raise KeyError("an inside that is nobody's business")

    run(estimate=crash)
    job = read_job(job_id)
    assert job.state == JobState.FAILED
    assert job.error is not None
    assert (job.error["code"], job.error["instance"]) == ("internal", f"/v1/jobs/{job_id}")
    assert job_id in job.error["detail"]
    assert "nobody's business" not in str(job.error)
    assert "nobody's business" in caplog.text
    assert job_id in caplog.text


def python_runs_out_of_memory(request: EstimationRequest, on_step: OnStep) -> Outcome:
    np.ones(2**62, dtype=np.int8)
    raise AssertionError("that much memory does not exist")


def torch_runs_out_of_memory(request: EstimationRequest, on_step: OnStep) -> Outcome:
    torch.ones(2**62, dtype=torch.int8)
    raise AssertionError("that much memory does not exist")


@pytest.mark.parametrize("allocate", [python_runs_out_of_memory, torch_runs_out_of_memory])
def test_a_fit_that_needs_too_much_memory_is_tried_again_and_then_fails_saying_so(
    run: Run, job_id: str, read_job: ReadJob, allocate: Callable[..., Outcome]
) -> None:
    for attempt in (1, 2):
        run(estimate=allocate)
        job = read_job(job_id)
        assert (job.state, job.attempt, job.error) == ("queued", attempt, None)
    run(estimate=allocate)
    job = read_job(job_id)
    assert job.error is not None
    assert (job.state, job.attempt, job.error["code"]) == ("failed", 3, "out-of-memory")


def test_a_cancelled_job_ends_cancelled_without_a_result(
    run: Run, database: Database, job_id: str, read_job: ReadJob
) -> None:
    def cancel_then_run(request: EstimationRequest, on_step: OnStep) -> Outcome:
        with database.transaction() as session:
            assert jobs.request_cancellation(session, job_id)
        return until_stopped(request, on_step)

    run(estimate=cancel_then_run)
    assert read_job(job_id).state == JobState.CANCELLED
    assert num_rows(database, ResultRecord) == 0


@pytest.mark.slow
def test_a_job_cancelled_in_its_last_moment_has_no_result(
    run: Run, database: Database, job_id: str, read_job: ReadJob
) -> None:
    def finish_after_cancel(request: EstimationRequest, on_step: OnStep) -> Outcome:
        outcome = estimate(request, lambda step: False)
        with database.transaction() as session:
            assert jobs.request_cancellation(session, job_id)
        return outcome

    run(estimate=finish_after_cancel)
    assert read_job(job_id).state == JobState.CANCELLED
    assert num_rows(database, ResultRecord) == 0
    assert num_rows(database, EdgeRecord) == 0


@pytest.mark.slow
def test_a_worker_that_lost_its_lease_changes_nothing(
    run: Run, database: Database, job_id: str, read_job: ReadJob
) -> None:
    def lose_lease(request: EstimationRequest, on_step: OnStep) -> Outcome:
        outcome = estimate(request, lambda step: False)
        token = read_job(job_id).lease_token
        assert token is not None
        with database.transaction() as session:
            assert leases.requeue(session, job_id, token, attempt_counts=False)
            assert leases.claim(session, job_id, lease_seconds=30)
        return outcome

    run(estimate=lose_lease)
    job = read_job(job_id)
    assert (job.state, job.lease_token is not None) == ("running", True)
    assert num_rows(database, ResultRecord) == 0


def test_a_worker_that_shuts_down_gives_the_attempt_back_and_wakes_another(
    run: Run, database: Database, job_id: str, read_job: ReadJob
) -> None:
    assert send(database) == [job_id]
    run(estimate=until_stopped, is_shutting_down=lambda: True)
    job = read_job(job_id)
    assert (job.state, job.attempt) == ("queued", 0)
    assert to_be_sent(database) == [job_id]


@pytest.mark.slow
def test_a_result_that_cannot_be_stored_fails_the_job_and_leaves_nothing_of_it(
    run: Run, database: Database, job_id: str, read_job: ReadJob
) -> None:
    def repeat_a_name(request: EstimationRequest, on_step: OnStep) -> Outcome:
        outcome = estimate(request, on_step)
        twice = [Artefact("same.csv", "text/csv", b"")] * 2
        return Outcome(outcome.document, outcome.edges, twice)

    run(estimate=repeat_a_name)
    job = read_job(job_id)
    assert job.error is not None
    assert (job.state, job.error["code"]) == ("failed", "internal")
    for record in (ResultRecord, EdgeRecord, ArtefactRecord):
        assert num_rows(database, record) == 0


@pytest.mark.slow
def test_a_result_that_the_disk_has_no_room_for_fails_the_job_saying_so(
    run: Run, database: Database, job_id: str, read_job: ReadJob
) -> None:
    large = Artefact("large.csv", "text/csv", bytes(2**20))

    def add_large_file(request: EstimationRequest, on_step: OnStep) -> Outcome:
        outcome = estimate(request, on_step)
        fill_disk(database)
        return Outcome(outcome.document, outcome.edges, [large])

    run(estimate=add_large_file)
    job = read_job(job_id)
    assert job.error is not None
    assert (job.state, job.error["code"]) == ("failed", "storage-full")
    assert num_rows(database, ResultRecord) == 0


def fill_disk(database: Database) -> None:
    """Let the file grow by a few pages at most, on the one connection that is used from here on."""
    database.dispose()

    def bound(connection: Any, entry: Any) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 8}")

    event.listen(database.engine, "connect", bound)


@pytest.mark.slow
def test_a_result_waits_for_a_database_that_is_away(
    run: Run, leaving_database: Any, job_id: str, read_job: ReadJob
) -> None:
    def lose_database(request: EstimationRequest, on_step: OnStep) -> Outcome:
        outcome = estimate(request, on_step)
        leaving_database.server.is_away = True
        threading.Timer(0.5, setattr, [leaving_database.server, "is_away", False]).start()
        return outcome

    run(estimate=lose_database, database=leaving_database)
    assert leaving_database.server.num_refused > 1
    assert read_job(job_id).state == JobState.SUCCEEDED


def test_a_worker_reads_and_writes_as_the_tenant_whose_job_it_is(
    database: Database, add_job: Callable[..., str]
) -> None:
    job_id = add_job()
    spec = SimulationSpec(graph="ring", n_variables=3, n_rows=10, seed=1, name="ring")
    # The handle of workers, to the rows of all tenants.
    whole = Database(database.engine.url.render_as_string(hide_password=False))
    with whole.transaction() as session:
        job = session.get_one(JobRecord, job_id)
        job.tenant, job.kind, job.spec = "lab", "simulation", spec.model_dump(mode="json")
    tenants: list[str | None] = []

    def load(handle: Database, claim: Claim, settings: WorkerSettings) -> Work:
        tenants.append(handle.tenant)
        return load_work(handle, claim, settings)

    run_job(job_id, whole, WorkerSettings(), load=load)
    with whole.snapshot() as session:
        assert session.get_one(JobRecord, job_id).state == JobState.SUCCEEDED
        assert session.scalars(select(DatasetRecord.tenant)).all() == ["lab"]
    assert tenants == ["lab"]
    whole.dispose()

"""A job that has succeeded, with a small result."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from service.db.database import Database
from service.jobs import leases, planning, submission
from service.jobs.result_records import ResultRecord
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.submission import SubmissionLimits, Submitter
from service.results import repository
from service.results.edges import Edge
from service.results.outcome import Artefact, Outcome
from service.results.schemas import EstimationResult
from service.results.vocabulary import EdgeScore, Verdict
from service.settings import Settings
from tests.result_files import NETWORK_FILES, SCORED_FILES

AddDataset = Callable[..., str]
NAMES = ["a", "b", "c", "d"]
TABLE = "a,b,c,d\n" + "\n".join(f"{1 + i},{5 + i % 3},{2 + i % 5},{1 + i % 7}" for i in range(20))

LIMITS = SubmissionLimits(max_attempts=3, max_unfinished_jobs=100)
NOBODY = Submitter(api_key_id=None, request_id=None)


@pytest.fixture
def settings(settings: Settings, database_url: str) -> Settings:
    """Return settings on the database that the results are in."""
    return settings.model_copy(update={"database_url": database_url})


def document() -> dict[str, Any]:
    return {
        "kind": "estimation",
        "names": NAMES,
        "transform": "none",
        "precision": [[float(i == j) for j in range(4)] for i in range(4)],
        "linear": {"requested": "auto", "choice": "zero", "values": [0.0] * 4, "evidence": None},
        "log_partition": -1.25,
        "penalty": {
            "kind": "adaptive",
            "fitted_kind": "adaptive",
            "requested": "auto",
            "selection": "held-out",
            "strength": 0.3,
            "path": [],
        },
        "stability": None,
        "convergence": {
            "status": "converged",
            "converged": True,
            "message": "The estimates changed by less than 0.003.",
            "n_iter": 12,
            "objective": -0.5,
            "gradient_norm": 0.001,
        },
        "diagnostics": {
            "is_positive_definite": True,
            "smallest_eigenvalue": 1.0,
            "separated_share": None,
            "mean_classification": 0.9,
            "effective_sample_size": None,
            "n_draws": None,
            "largest_interaction": 0.4,
            "noise_ratio": 30.0,
        },
        "warnings": [],
        "assumption": "Nothing is missing.",
        "counts": {
            "n_rows": 20,
            "n_empty_rows": 0,
            "n_fitted_rows": 20,
            "n_variables": 4,
            "n_missing": 0,
            "n_censored": 0,
        },
        "edge_rule": {"threshold": 0.1, "text": "…", "n_selected": 3, "n_pairs": 6},
        "scores": [
            {"score": score, "auc": None, "average_precision": None, "reason": "no true graph"}
            for score in EdgeScore
        ],
        "seed": 7,
        "versions": {"vnce": "1", "python": "3", "numpy": "2", "scipy": "1", "torch": "2"},
        "dataset": {"id": "ds_1", "name": "table.csv", "sha256": "00"},
        "timing": {"fit_seconds": 1.0, "export_seconds": 0.5, "n_threads": 1},
    }


def judged(edge: Edge) -> Edge:
    """Return the edge as a test with a standard error of .1 might judge it; the last not at all."""
    if edge.precision == 0:
        return replace(edge, verdict=Verdict.UNDECIDED)
    weight = edge.scaled_interaction
    return replace(
        edge,
        debiased=1.2 * weight,
        standard_error=0.1,
        lower=1.2 * weight - 0.2,
        upper=1.2 * weight + 0.2,
        p_value=0.01,
        q_value=0.02,
        verdict=Verdict.PRESENT if edge.selected else Verdict.ABSENT,
    )


@pytest.fixture
def outcome() -> Outcome:
    """Return what a worker might hand over; every artefact's bytes are its own name."""
    types = {
        "json": "application/json",
        "svg": "image/svg+xml",
        "csv": "text/csv",
        "html": "text/html",
    }
    weights = [0.5, -0.4, 0.3, 0.05, -0.05, 0.0]
    edges = [
        judged(
            Edge(source, target, -weight, weight, weight, selected=abs(weight) >= 0.1, n_pairwise=9)
        )
        for (source, target), weight in zip(itertools.combinations(NAMES, 2), weights, strict=True)
    ]
    return Outcome(
        document=EstimationResult.model_validate(document()),
        edges=edges,
        artefacts=[
            Artefact(name, types.get(name.rpartition(".")[2], "application/x"), name.encode())
            for name in sorted(NETWORK_FILES | SCORED_FILES)
        ],
    )


@pytest.fixture
def add_job(database: Database, add_dataset: AddDataset) -> Callable[..., str]:
    """Return a function that stores a queued job."""

    def add(truth: list[list[str]] | None = None) -> str:
        body = EstimationSpec(dataset_id=add_dataset(TABLE, truth))
        with database.transaction() as session:
            job = submission.store(session, planning.plan(session, body), LIMITS, NOBODY)
        return job.id

    return add


@pytest.fixture
def finish(database: Database, outcome: Outcome) -> Callable[[str], None]:
    """Return a function that ends a queued job with `outcome`."""

    def end(job_id: str) -> None:
        with database.transaction() as session:
            taken = leases.claim(session, job_id, 60)
            assert taken is not None
            assert leases.succeed(session, job_id, taken.token)
            repository.store(session, job_id, outcome)

    return end


@pytest.fixture
def job_id(add_job: Callable[..., str], finish: Callable[[str], None]) -> str:
    """Return the id of a job that has succeeded and had no true graph."""
    job = add_job()
    finish(job)
    return job


@pytest.fixture
def indefinite_job_id(
    database: Database, add_job: Callable[..., str], finish: Callable[[str], None]
) -> str:
    """Return the id of a job whose K is not positive definite."""
    job = add_job()
    finish(job)
    with database.transaction() as session:
        result = session.get_one(ResultRecord, job)
        diagnostics = {**result.document["diagnostics"], "is_positive_definite": False}
        result.document = {**result.document, "diagnostics": diagnostics}
    return job


@pytest.fixture
def scored_job_id(add_job: Callable[..., str], finish: Callable[[str], None]) -> str:
    """Return the id of a job that has succeeded and had a true graph."""
    job = add_job(truth=[["a", "b"]])
    finish(job)
    return job

"""One estimation from a table to everything that is stored of it; pure, without a database."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

import pyarrow as pa

from service.datasets.schemas import DatasetSummary, DatasetWarning
from service.datasets.stored_table import Texts
from service.datasets.vocabulary import WarningCode
from service.http.problems import ProblemCode, ProblemItem, problem_document
from service.jobs.specs.base import planned
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.vocabulary import CensoredRule
from service.results.outcome import Artefact, Outcome
from service.results.schemas import DatasetIdentity, EstimationResult
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.runtime.checkpoint import Checkpoint, UnusableCheckpointError
from vnce_engine.runtime.reports import FitStatus, FitStep, FitWarning
from worker.artefacts.fitted import FittedNetwork, cluster_labels
from worker.artefacts.ground_truth import Pair, pair
from worker.artefacts.network_files import MAKERS, Maker
from worker.artefacts.report.page import report_artefact
from worker.jobs.builders import build_estimator
from worker.jobs.failures import FitCancelledError, JobFailedError, incompatible
from worker.jobs.network_document import encode
from worker.jobs.resuming import resume_or_restart

__all__ = ["EstimationRequest", "FitCancelledError", "JobFailedError", "OnStep", "estimate"]

# Shares of the whole at which a stage ends; the fit is nearly all of it.
PREPARED = 0.02
FITTED = 0.90

# What may be behind an objective that is not finite, as the upload and as the engine saw it.
_RUN_AWAY = frozenset(
    (
        WarningCode.NEARLY_CONSTANT,
        WarningCode.DUPLICATE_COLUMNS,
        WarningCode.OUTLIERS,
        WarningCode.NEVER_TOGETHER,
    )
)
_RUN_AWAY_IN_FIT = frozenset(("collinear-columns", "linearly-dependent"))

OnStep = Callable[[FitStep], bool | None]
# What is computed of an estimation's outcome and the table that was read.
FollowUp = Callable[[Outcome, pa.Table, OnStep], Outcome]


@dataclass(frozen=True)
class EstimationRequest:
    """Everything that decides an estimation; the same request gives the same numbers."""

    spec: EstimationSpec
    # A column of doubles for every variable of the spec, and its clusters, null where no number is
    # known.
    table: pa.Table
    # What was read for its numbers; None where the upload had no texts.
    texts: Texts | None
    # Cells such as `<0.5` or `ND`, by `column`; see `service.datasets.readers.cells.CELL_SCHEMA`.
    censored: pa.Table
    # Undirected pairs of names; None where no true graph is known.
    ground_truth: list[list[str]] | None
    # What was odd about the table when it was uploaded.
    table_warnings: list[DatasetWarning]
    dataset: DatasetIdentity
    # How the upload was read; None where that is not known.
    summary: DatasetSummary | None = None
    # What an interrupted attempt at this estimation had done.
    checkpoint: Checkpoint | None = None


def estimate(request: EstimationRequest, on_step: OnStep) -> Outcome:
    """Fit the model and make every derived file, as `estimate_files` does."""
    outcome, _ = estimate_and_follow(request, {}, on_step)
    return outcome


def estimate_and_follow(
    request: EstimationRequest, follow_ups: Mapping[str, FollowUp], on_step: OnStep
) -> tuple[Outcome, dict[str, Outcome]]:
    """Estimate as `estimate` does, and return what comes of each follow-up by its name, too.

    The estimation's report has a section of each.
    """
    fitted, document, artefacts = estimate_files(request, on_step, MAKERS)
    report(on_step, "export", 1.0)
    outcome = Outcome(document=document, edges=fitted.edges, artefacts=artefacts)
    others = {
        name: follow_up(outcome, request.table, on_step) for name, follow_up in follow_ups.items()
    }
    artefacts.append(
        report_artefact(fitted, document, request.summary, artefacts, [*others.values()])
    )
    return outcome, others


def estimate_files(
    request: EstimationRequest, on_step: OnStep, makers: Sequence[Maker]
) -> tuple[FittedNetwork, EstimationResult, list[Artefact]]:
    """Fit the model and make some of the files.

    `on_step` hears of the stages prepare, those of the engine, and export, with the share of the
    whole that is done, which never falls; it stops the estimation by returning True.

    Raises `FitCancelledError` if it did, and `JobFailedError` where the data or the numerics allow
    no result. A fit that only ran out of iterations has a result, which says so.
    """
    spec = request.spec
    report(on_step, "prepare", 0.0)
    censored = count_censored(planned(spec.variables), spec.censored, request.censored)
    table = request.table.select(planned(spec.variables))
    truth = _known_pairs(request)
    report(on_step, "prepare", PREPARED)

    started = time.perf_counter()
    fit = partial(fit_network, request, table, partial(_report_fit, on_step))
    estimator, resumed = resume_or_restart(fit, request.checkpoint)
    fit_seconds = time.perf_counter() - started

    report(on_step, "export", FITTED)
    started = time.perf_counter()
    clusters = cluster_labels(spec, request.table)
    fitted = FittedNetwork.of(
        spec, request.dataset.name, estimator, table, request.texts, truth, clusters
    )
    artefacts = _make_artefacts(fitted, makers, on_step)
    document = encode(
        fitted,
        request.dataset,
        censored,
        request.table_warnings,
        fit_seconds=fit_seconds,
        export_seconds=time.perf_counter() - started,
        resumed=resumed,
    )
    return fitted, document, artefacts


def _make_artefacts(
    fitted: FittedNetwork, makers: Sequence[Maker], on_step: OnStep
) -> list[Artefact]:
    artefacts: list[Artefact] = []
    for position, make in enumerate(makers, start=1):
        for artefact in make(fitted):
            artefacts.append(artefact)
            done = position / (len(makers) + 1)
            report(on_step, "export", FITTED + (1 - FITTED) * done)
    return artefacts


def report(on_step: OnStep, stage: str, fraction: float) -> None:
    """Say that a stage has come to this share of the whole; raise `FitCancelledError` if told."""
    if on_step(FitStep(stage=stage, fraction=fraction, iteration=0, objective=None)):
        raise FitCancelledError


def count_censored(variables: Sequence[str], rule: CensoredRule, cells: pa.Table) -> dict[str, int]:
    """Return how many cells of each variable hold a limit and will be treated as missing.

    `cells` are all that hold one. Raises `JobFailedError` where the rule is to refuse them.
    """
    used = set(variables)
    columns = cells.column("column").to_pylist()
    counts = dict(Counter(column for column in columns if column in used))
    if counts and rule is CensoredRule.REFUSE:
        raise incompatible(
            "Cells hold a limit such as <0.5 and no number, which no model uses yet. Set "
            '`censored="missing"` to treat them as missing.',
            [
                ProblemItem(message="Cells that hold a limit.", column=name, count=count)
                for name, count in counts.items()
            ],
        )
    return counts


def _known_pairs(request: EstimationRequest) -> frozenset[Pair] | None:
    if request.ground_truth is None:
        return None
    used = set(planned(request.spec.variables))
    return frozenset(pair(*edge) for edge in request.ground_truth if used.issuperset(edge))


def _report_fit(on_step: OnStep, step: FitStep) -> bool | None:
    fraction = PREPARED + (FITTED - PREPARED) * step.fraction
    return on_step(replace(step, fraction=fraction))


def fit_network(
    request: EstimationRequest, table: pa.Table, on_step: OnStep | None, checkpoint: Checkpoint
) -> NetworkEstimator:
    """Return the estimator fitted to the `table` of the spec's variables.

    Raises as `estimate_files` does.
    """
    estimator = build_estimator(request.spec)
    try:
        # A table, for the names in its refusals.
        clusters = cluster_labels(request.spec, request.table)
        estimator.fit(table, on_step=on_step, checkpoint=checkpoint, clusters=clusters)
    except UnusableCheckpointError:
        raise
    except ValueError as refusal:
        # What the engine refuses is data or options, never an accident of ours: its own
        # invariants are assertions.
        raise incompatible(str(refusal)) from refusal
    match FitStatus(estimator.status_):
        case FitStatus.CONVERGED | FitStatus.MAX_ITERATIONS:
            return estimator
        case FitStatus.CANCELLED:
            raise FitCancelledError
        case FitStatus.NON_FINITE:
            raise _non_finite(estimator, _suspects(request, estimator))
        case _ as unknown:
            assert_never(unknown)


def _suspects(
    request: EstimationRequest, estimator: NetworkEstimator
) -> list[DatasetWarning | FitWarning]:
    """Return what is odd about the variables used that can make an objective run away."""
    used = set(planned(request.spec.variables))
    of_table = [
        warning
        for warning in request.table_warnings
        if warning.code in _RUN_AWAY and used.issuperset(warning.columns)
    ]
    in_fit = [warning for warning in estimator.warnings_ if warning.code in _RUN_AWAY_IN_FIT]
    return [*of_table, *in_fit]


def _non_finite(
    estimator: NetworkEstimator, suspects: Sequence[DatasetWarning | FitWarning]
) -> JobFailedError:
    finite = [value for value in estimator.objective_path_ if math.isfinite(value)]
    last = f"its last finite value was {finite[-1]:.6g}" if finite else "it never was finite"
    return JobFailedError(
        problem_document(
            ProblemCode.NON_FINITE_OBJECTIVE,
            f"The objective was not finite at iteration {estimator.n_iter_}; {last}. "
            f"{estimator.message_}",
            errors=[
                ProblemItem(message=warning.message, column=name)
                for warning in suspects
                for name in warning.columns
            ],
        )
    )

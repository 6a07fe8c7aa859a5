"""Comparisons as jobs: a model a part, each fitted to all rows and without each fold."""

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from sqlalchemy.orm import Session

from service.datasets import repository as datasets
from service.jobs.job_parts import PARTS_SHARE
from service.jobs.specs.base import planned
from service.jobs.specs.comparison import ComparisonPartSpec, ComparisonSpec
from service.results.comparison_result import (
    ComparedFitRead,
    ComparedModelRead,
    ComparisonPartResult,
    ComparisonResult,
)
from service.results.outcome import Outcome
from service.results.parts_result import PartFailureRead
from service.results.schemas import DatasetIdentity
from service.results.vocabulary import EdgeRule
from vnce_engine.data.clusters import Codes, cluster_codes
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.estimators.held_out_density import HeldOutDensity, held_out_density
from vnce_engine.estimators.seeds import seed_of
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.progress import within
from vnce_engine.runtime.reports import FitStep
from vnce_engine.selection.held_out_gains import standings
from worker.artefacts.comparison_files import (
    ComparedNetwork,
    Votes,
    compared_pair,
    comparison_artefacts,
)
from worker.artefacts.figures.drawing import label
from worker.artefacts.fitted import applied, cluster_labels, edges_of
from worker.artefacts.report.comparison import comparison_section
from worker.artefacts.report.methods import Paragraph, compared_methods
from worker.artefacts.report.rendering import job_report
from worker.jobs.builders import build_estimator
from worker.jobs.estimation import EstimationRequest, OnStep, count_censored, fit_network
from worker.jobs.failures import FitCancelledError
from worker.jobs.network_document import finite
from worker.jobs.parts import FinishedParts, Split, this_process
from worker.jobs.result_warnings import censoring_warnings, engine_warnings
from worker.jobs.resuming import resume_or_restart
from worker.jobs.versions import versions


@dataclass(frozen=True)
class PartRequest:
    """What a part is computed from."""

    spec: ComparisonPartSpec
    fit: EstimationRequest


def load_dataset(session: Session, dataset_id: str) -> DatasetIdentity:
    """Return which data set it is; jobs that need one keep it from being deleted."""
    stored = datasets.find(session, dataset_id)
    assert stored is not None
    return DatasetIdentity(id=dataset_id, name=stored.record.name, sha256=stored.original.sha256)


def split(spec: ComparisonSpec, on_step: OnStep) -> Split:
    """Return a job for every specification."""
    return Split(parts_of(spec))


def parts_of(spec: ComparisonSpec) -> list[ComparisonPartSpec]:
    """Return the parts of a comparison, a specification each, labelled by its name."""
    return [
        ComparisonPartSpec(
            kind="comparison-part",
            estimation=spec.estimation(position),
            n_folds=spec.n_folds,
            part=position,
            label=planned(one.name),
            tag=spec.tag,
        )
        for position, one in enumerate(spec.specifications)
    ]


def run_part(request: PartRequest, on_step: OnStep) -> Outcome:
    """Fit one model to all rows and without each fold.

    Raises `FitCancelledError` if `on_step` asks to stop, and `JobFailedError` where the data or the
    numerics allow no fit to all rows.
    """
    spec, estimation = request.spec, request.spec.estimation
    names = planned(estimation.variables)
    started = time.process_time()
    censored = count_censored(names, estimation.censored, request.fit.censored)
    table, clusters = request.fit.table, None
    if (labels := cluster_labels(estimation, table)) is not None:
        clusters = cluster_codes(labels, len(labels))
    fit = partial(_fits, request, table.select(names), clusters, on_step)
    (estimator, held_out), _ = resume_or_restart(fit, request.fit.checkpoint)
    network = ComparedNetwork.of(
        held_out.log_densities, edges_of(names, estimator), names, held_out.clusters
    )
    return Outcome(
        document=ComparisonPartResult(
            kind="comparison-part",
            label=spec.label,
            reason=held_out.reason,
            fit=ComparedFitRead(
                converged=estimator.converged_,
                transform=applied(estimator.column_transform_),
                decided_by=EdgeRule(estimator.edge_rule_),
                n_selected=int(network.selected.sum()),
                n_unconverged_folds=held_out.num_unconverged,
                monte_carlo_error=finite(held_out.monte_carlo_error),
                warnings=[*censoring_warnings(censored), *engine_warnings(estimator)],
            ),
            seconds=time.process_time() - started,
            worker=this_process(),
            versions=versions(),
        ),
        edges=[],
        artefacts=network.artefacts(),
    )


def _fits(
    request: PartRequest,
    table: pa.Table,
    clusters: Codes | None,
    on_step: OnStep,
    checkpoint: Checkpoint,
) -> tuple[NetworkEstimator, HeldOutDensity]:
    estimation, n_folds = request.spec.estimation, request.spec.n_folds
    whole = within(on_step, 0, n_folds + 1, "all rows")
    estimator = fit_network(request.fit, table, whole, checkpoint)
    held_out = held_out_density(
        build_estimator(estimation),
        table,
        estimator.read(table),
        n_folds,
        seed_of(planned(estimation.seed)),
        on_step,
        checkpoint,
        clusters,
    )
    return estimator, held_out


def put_together(
    spec: ComparisonSpec, dataset: DatasetIdentity, parts: FinishedParts, on_step: OnStep
) -> Outcome:
    """Rank the models of all parts; those of failed parts come last, and say why.

    Raises `JobFailedError` if no part has a result, `FitCancelledError` if `on_step` asks to stop.
    """
    if on_step(FitStep("put together", PARTS_SHARE, iteration=0, objective=None)):
        raise FitCancelledError
    parts.require_some()
    results = {
        result.label: result for result in parts.results if isinstance(result, ComparisonPartResult)
    }
    found = {
        name: ComparedNetwork.read(files) for name, files in zip(results, parts.files, strict=True)
    }
    one = next(iter(found.values()))
    models = _models(spec, found, results, parts.failures)
    networks = {model.name: found[model.name] for model in models if model.name in found}
    votes = Votes.of(networks.values())
    strength = np.mean([network.strength for network in networks.values()], axis=0)
    order = np.argsort(-strength, kind="stable").tolist()
    selected = [k for k in order if votes.num_selected[k]]
    agreed = [compared_pair(networks, k) for k in selected if votes.is_unanimous[k]]
    disputed = [compared_pair(networks, k) for k in selected if not votes.is_unanimous[k]]
    title = f"{len(models)} models: {label(dataset.name)}"
    document = ComparisonResult(
        kind="comparison",
        dataset=dataset,
        names=planned(spec.variables),
        n_rows=len(one.log_densities),
        n_clusters=None if one.clusters is None else len(np.unique(one.clusters)),
        n_folds=spec.n_folds,
        models=models,
        n_pairs=len(order),
        agreed=agreed,
        disputed=disputed,
        seed=planned(spec.seed),
        versions=versions(),
        **parts.account(),
    )
    files = comparison_artefacts(spec.specifications, models, networks, order, disputed, title)
    section = comparison_section(document, files)
    how = [
        Paragraph(
            compared_methods(spec.estimation(model.position), model.fit, len(document.names)),
            f"Model {place}, {model.name}",
        )
        for place, model in enumerate(models, start=1)
    ]
    files.append(job_report(section, how, document.seed, document.versions))
    return Outcome(document, edges=[], artefacts=files)


def _models(
    spec: ComparisonSpec,
    found: dict[str, ComparedNetwork],
    results: dict[str, ComparisonPartResult],
    failures: list[PartFailureRead],
) -> list[ComparedModelRead]:
    """Return all models, the best first, those without a density next, failed ones last."""
    positions = {planned(one.name): place for place, one in enumerate(spec.specifications)}
    ranked = [
        ComparedModelRead(
            name=standing.name,
            position=positions[standing.name],
            log_density=finite(standing.log_density),
            standard_error=finite(standing.standard_error),
            behind=finite(standing.behind),
            behind_standard_error=finite(standing.behind_error),
            reason=results[standing.name].reason,
            fit=results[standing.name].fit,
        )
        for standing in standings(
            {name: one.log_densities for name, one in found.items()},
            next(iter(found.values())).clusters,
        )
    ]
    failed = [
        ComparedModelRead(
            name=failure.label,
            position=positions[failure.label],
            log_density=None,
            standard_error=None,
            behind=None,
            behind_standard_error=None,
            reason="The fit was cancelled." if failure.error is None else failure.error.detail,
            fit=None,
        )
        for failure in failures
    ]
    return ranked + failed

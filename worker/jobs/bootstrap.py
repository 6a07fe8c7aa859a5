"""Bootstraps as jobs: resamples of an estimation's rows, some a part, put together."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from service.datasets import repository as datasets
from service.jobs.job_parts import PARTS_SHARE
from service.jobs.specs.base import planned
from service.jobs.specs.bootstrap import BootstrapPartSpec, BootstrapSpec
from service.results.bootstrap_result import (
    BootstrapEdgeRead,
    BootstrapPartResult,
    BootstrapResult,
    BootstrapVariableRead,
    CorrelationStabilityRead,
    SpreadRead,
    StatisticStabilityRead,
)
from service.results.outcome import Outcome
from vnce_engine.data.clusters import Codes
from vnce_engine.estimators.bootstrap import fit_resamples, with_replacement
from vnce_engine.estimators.correlation_stability import subset
from vnce_engine.estimators.seeds import seed_of
from vnce_engine.inference.correlation_stability import (
    CorrelationStability,
    StatisticStability,
    correlate,
)
from vnce_engine.inference.resamples import Bootstrap, Failure, Network, Spread, summarise
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.reports import FitStep
from worker.artefacts.bootstrap_files import (
    RESAMPLES,
    SUBSETS,
    bootstrap_artefacts,
    read_resamples,
    resamples_artefact,
    stability_artefacts,
)
from worker.artefacts.figures.drawing import label
from worker.artefacts.fitted import cells_and_clusters
from worker.artefacts.report.bootstrap import bootstrap_section
from worker.artefacts.report.rendering import job_report
from worker.jobs.builders import build_estimator
from worker.jobs.estimated import Estimated, load_estimated
from worker.jobs.estimation import OnStep
from worker.jobs.failures import FitCancelledError
from worker.jobs.network_document import finite
from worker.jobs.parts import FinishedParts, Split, this_process
from worker.jobs.resuming import resume_or_restart
from worker.jobs.versions import versions

# Of a part: of networks of twenty variables it takes about a quarter of a minute.
_RESAMPLES = 10
PART_FAILED = "part-failed"

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class PartRequest:
    """What a part is computed from."""

    spec: BootstrapPartSpec
    estimated: Estimated
    table: FloatArray
    # The cluster of each row; None where rows are independent.
    clusters: Codes | None
    checkpoint: Checkpoint | None


def load_part(
    session: Session, spec: BootstrapPartSpec, checkpoint: Checkpoint | None
) -> PartRequest:
    """Return what a part needs; raises as `load_estimated`."""
    estimated = load_estimated(session, spec.job_id)
    stored = datasets.load_table(session, estimated.spec.dataset_id)
    names = planned(estimated.spec.variables)
    return PartRequest(
        spec, estimated, *cells_and_clusters(estimated.spec, names, stored.table), checkpoint
    )


def split(spec: BootstrapSpec, on_step: OnStep) -> Split:
    """Return a job for every few resamples."""
    return Split(parts_of(spec))


def parts_of(spec: BootstrapSpec) -> list[BootstrapPartSpec]:
    """Return the parts of a bootstrap, a few resamples each, and then a few subsets each."""
    of_each = [
        (first, min(_RESAMPLES, number - first), are_subsets)
        for number, are_subsets in ((spec.n_resamples, False), (spec.n_subsets, True))
        for first in range(0, number, _RESAMPLES)
    ]
    return [
        BootstrapPartSpec(
            kind="bootstrap-part",
            job_id=spec.job_id,
            first=first,
            n_resamples=size,
            are_subsets=are_subsets,
            seed=planned(spec.seed),
            part=part,
            label=f"{'subsets' if are_subsets else 'resamples'} {first + 1} to {first + size}",
            tag=spec.tag,
        )
        for part, (first, size, are_subsets) in enumerate(of_each)
    ]


def run_part(request: PartRequest, on_step: OnStep) -> Outcome:
    """Fit some resamples; raises `FitCancelledError` if `on_step` asks to stop."""
    spec, estimated = request.spec, request.estimated
    started = time.process_time()
    fit = partial(
        fit_resamples,
        build_estimator(estimated.spec),
        estimated.choices,
        request.table,
        range(spec.first, spec.first + spec.n_resamples),
        seed_of(planned(spec.seed)),
        on_step,
        draw=subset if spec.are_subsets else with_replacement,
        clusters=request.clusters,
    )
    outcomes, _ = resume_or_restart(fit, request.checkpoint)
    return Outcome(
        document=BootstrapPartResult(
            kind="bootstrap-part",
            label=spec.label,
            n_failed=sum(isinstance(one, Failure) for one in outcomes),
            seconds=time.process_time() - started,
            worker=this_process(),
            versions=versions(),
        ),
        edges=[],
        artefacts=[
            resamples_artefact(SUBSETS if spec.are_subsets else RESAMPLES, spec.first, outcomes)
        ],
    )


def put_together(
    spec: BootstrapSpec, estimated: Estimated, parts: FinishedParts, on_step: OnStep
) -> Outcome:
    """Sum up the resamples of all parts; those of failed parts have failed.

    Raises `JobFailedError` if no part has a result, `FitCancelledError` if `on_step` asks to stop.
    """
    if on_step(FitStep("put together", PARTS_SHARE, iteration=0, objective=None)):
        raise FitCancelledError
    parts.require_some()
    outcomes = _numbered(parts, RESAMPLES, spec.n_resamples)
    names, network = estimated.result.names, estimated.network
    found = summarise(outcomes, network, len(names), spec.n_resamples)
    edges = _edges(found, names, network)
    stability = None
    if spec.n_subsets:
        subsets = _numbered(parts, SUBSETS, spec.n_subsets)
        stability = _stability(correlate(subsets, network, len(names)))
    title = f"{found.n_ok} resamples: {label(estimated.result.dataset.name)}"
    document = BootstrapResult(
        kind="bootstrap",
        bootstrapped_job_id=spec.job_id,
        n_clusters=estimated.result.counts.n_clusters,
        n_requested=found.n_requested,
        n_ok=found.n_ok,
        n_failed=found.n_requested - found.n_ok,
        resample_failures=dict(found.failures),
        reason=found.reason,
        held=estimated.held,
        rank_correlation=found.rank_correlation,
        n_selected=int(network.selected.sum()),
        top_kept=found.top_kept,
        strength_rank_correlation=found.strength_rank_correlation,
        edges=edges,
        variables=[
            BootstrapVariableRead(name=name, strength=_spread(found.strength, j))
            for j, name in enumerate(names)
        ],
        stability=stability,
        seed=planned(spec.seed),
        versions=versions(),
        **parts.account(),
    )
    files = bootstrap_artefacts(edges, title)
    if stability is not None:
        about = f"{spec.n_subsets} subsets: {label(estimated.result.dataset.name)}"
        files += stability_artefacts(stability, about)
    heading = f"Bootstrap of the network of {estimated.result.dataset.name}"
    section = replace(bootstrap_section(document, files), heading=heading)
    how = [estimated.methods(spec.job_id)]
    files.append(job_report(section, how, document.seed, document.versions))
    return Outcome(document, edges=[], artefacts=files)


def _numbered(parts: FinishedParts, name: str, number: int) -> list[Network | Failure]:
    """Return so many resamples, or subsets; those of failed parts have failed."""
    found = {
        n: one for content in parts.contents(name) for n, one in read_resamples(content).items()
    }
    return [found.get(n, Failure(PART_FAILED)) for n in range(number)]


def _stability(found: CorrelationStability) -> CorrelationStabilityRead:
    return CorrelationStabilityRead(
        dropped=found.dropped.tolist(),
        n_requested=found.n_requested.tolist(),
        n_ok=found.n_ok.tolist(),
        failures=dict(found.failures),
        edges=_statistic(found.edges),
        strength=_statistic(found.strength),
        expected_influence=_statistic(found.expected_influence),
    )


def _statistic(found: StatisticStability) -> StatisticStabilityRead:
    return StatisticStabilityRead(
        coefficient=found.coefficient,
        mean=list(map(finite, found.mean.tolist())),
        lower=list(map(finite, found.lower.tolist())),
        agreeing=list(map(finite, found.agreeing.tolist())),
    )


def _edges(found: Bootstrap, names: Sequence[str], network: Network) -> list[BootstrapEdgeRead]:
    """Return all pairs, the largest |scaled interaction| first."""
    order = np.argsort(-np.abs(network.partial_correlation), kind="stable")
    return [
        BootstrapEdgeRead(
            source=names[i],
            target=names[j],
            selected=bool(network.selected[k]),
            inclusion=finite(float(found.inclusion[k])),
            partial_correlation=_spread(found.partial_correlation, k),
            debiased=_spread(found.debiased, k),
        )
        for k, (i, j) in ((int(k), found.pairs[k]) for k in order)
    ]


def _spread(spread: Spread, place: int) -> SpreadRead:
    return SpreadRead(
        mean=finite(float(spread.mean[place])),
        standard_deviation=finite(float(spread.standard_deviation[place])),
        lower=finite(float(spread.lower[place])),
        upper=finite(float(spread.upper[place])),
        n=int(spread.count[place]),
    )

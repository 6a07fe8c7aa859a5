"""Differences as jobs: permutations of the rows of two tables, some a part, put together."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from service.jobs.job_parts import PARTS_SHARE
from service.jobs.specs.base import planned
from service.jobs.specs.difference import DifferencePartSpec, DifferenceSpec
from service.results.difference_result import (
    DifferenceEdgeRead,
    DifferenceNetworkRead,
    DifferencePartResult,
    DifferenceResult,
    GlobalTestRead,
)
from service.results.outcome import Outcome
from vnce_engine.estimators.difference import fit_permutations
from vnce_engine.estimators.seeds import seed_of
from vnce_engine.inference.differences import (
    Difference,
    GlobalTest,
    NetworkPair,
    compare_pairs,
    of_pairs,
)
from vnce_engine.inference.resamples import Failure
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.reports import FitStep
from worker.artefacts.difference_files import (
    PERMUTATIONS,
    difference_artefacts,
    permutations_artefact,
    read_permutations,
)
from worker.artefacts.figures.drawing import label
from worker.artefacts.report.difference import difference_section
from worker.artefacts.report.rendering import job_report
from worker.jobs.bootstrap import PART_FAILED
from worker.jobs.difference_sides import Side, Sides
from worker.jobs.estimation import OnStep
from worker.jobs.failures import FitCancelledError, incompatible
from worker.jobs.network_document import finite
from worker.jobs.parts import FinishedParts, Split, this_process
from worker.jobs.resuming import resume_or_restart
from worker.jobs.versions import versions

# Of a part: of networks of twenty variables they take about a quarter of a minute.
_PERMUTATIONS = 5

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class PartRequest:
    """What a part is computed from."""

    spec: DifferencePartSpec
    sides: Sides
    checkpoint: Checkpoint | None


def split(spec: DifferenceSpec, sides: Sides, on_step: OnStep) -> Split:
    """Return a job for every few permutations, and groups as they are; `sides` can be fitted."""
    return Split(parts_of(spec))


def parts_of(spec: DifferenceSpec) -> list[DifferencePartSpec]:
    """Return the parts of a difference, a few permutations each."""
    begin, end = int(spec.by is None), planned(spec.n_permutations) + 1
    return [
        DifferencePartSpec(
            kind="difference-part",
            job_id=spec.job_id,
            other_job_id=spec.other_job_id,
            by=spec.by,
            first=first,
            n_permutations=min(_PERMUTATIONS, end - first),
            seed=planned(spec.seed),
            part=part,
            label=_label(first, min(first + _PERMUTATIONS, end)),
            tag=spec.tag,
        )
        for part, first in enumerate(range(begin, end, _PERMUTATIONS))
    ]


def run_part(request: PartRequest, on_step: OnStep) -> Outcome:
    """Fit some permutations; raises `FitCancelledError` if `on_step` asks to stop."""
    spec, sides = request.spec, request.sides
    started = time.process_time()
    transform = sides.first.estimated.choices.column_transform
    fit = partial(
        fit_permutations,
        (sides.first.estimator(transform), sides.second.estimator(transform)),
        (sides.first.table, sides.second.table),
        range(spec.first, spec.first + spec.n_permutations),
        seed_of(planned(spec.seed)),
        on_step,
        clusters=(sides.first.clusters, sides.second.clusters),
    )
    outcomes, _ = resume_or_restart(fit, request.checkpoint)
    return Outcome(
        document=DifferencePartResult(
            kind="difference-part",
            label=spec.label,
            n_failed=sum(isinstance(one, Failure) for one in outcomes),
            seconds=time.process_time() - started,
            worker=this_process(),
            versions=versions(),
        ),
        edges=[],
        artefacts=[permutations_artefact(spec.first, outcomes)],
    )


def put_together(
    spec: DifferenceSpec, sides: Sides, parts: FinishedParts, on_step: OnStep
) -> Outcome:
    """Compare the networks, and what all parts say of permutations; those of failed parts failed.

    Raises `JobFailedError` where groups have no networks, `FitCancelledError` if `on_step` asks to
    stop.
    """
    if on_step(FitStep("put together", PARTS_SHARE, iteration=0, objective=None)):
        raise FitCancelledError
    if parts.num_parts:
        parts.require_some()
    by_number = {
        n: one
        for content in parts.contents(PERMUTATIONS)
        for n, one in read_permutations(content).items()
    }
    failed = Failure(PART_FAILED)
    observed = _estimates(sides) if spec.by is None else by_number.get(0, failed)
    if isinstance(observed, Failure):
        raise incompatible(f"The groups have no networks that can be compared: {observed.cause}.")
    number = planned(spec.n_permutations)
    permuted = [by_number.get(n, failed) for n in range(1, number + 1)]
    found = compare_pairs(observed, permuted, len(sides.names), number)
    edges = _edges(found, sides.names, spec.fdr)
    labels = sides.first.label, sides.second.label
    title = " minus ".join(map(label, labels))
    document = DifferenceResult(
        kind="difference",
        first=_network(sides.first, spec.job_id),
        second=_network(sides.second, spec.other_job_id or spec.job_id),
        by=spec.by,
        n_unlabelled=sides.num_unlabelled,
        held=None if spec.by is None else sides.first.estimated.held,
        n_permutations=number,
        n_ok=found.n_ok,
        n_failed=number - found.n_ok,
        permutation_failures=dict(found.failures),
        reason=found.reason,
        largest_z=_test(found.largest),
        sum_of_squares=_test(found.sum_of_squares),
        fdr=spec.fdr,
        n_differing=sum(edge.differs for edge in edges),
        edges=edges,
        seed=planned(spec.seed),
        versions=versions(),
        **parts.account(),
    )
    files = difference_artefacts(edges, labels, spec.fdr, title)
    section = difference_section(document, files)
    jobs = document.first.job_id, document.second.job_id
    how = [side.estimated.methods(job) for side, job in zip(sides.both, jobs, strict=True)]
    # Both groups of a table are of one estimation.
    how = list(dict.fromkeys(how))
    files.append(job_report(section, how, document.seed, document.versions))
    return Outcome(document, edges=[], artefacts=files)


def _estimates(sides: Sides) -> NetworkPair:
    """Return what both estimations found."""
    places = {name: place for place, name in enumerate(sides.names)}
    both = []
    for side in sides.both:
        names = side.estimated.result.names
        rows, columns = np.triu_indices(len(names), k=1)
        edges = zip(
            (places[names[i]] for i in rows),
            (places[names[j]] for j in columns),
            side.estimated.network.debiased,
            side.estimated.standard_error,
            side.estimated.num_pairwise,
            strict=True,
        )
        both.append(of_pairs(edges, len(names)))
    return NetworkPair(*np.stack(both, axis=1))


def _edges(found: Difference, names: Sequence[str], fdr: float) -> list[DifferenceEdgeRead]:
    """Return all pairs, the largest |z| first, those without one last."""
    order = np.argsort(-np.abs(found.z), kind="stable")  # NaN is last
    return [
        DifferenceEdgeRead(
            source=names[found.pairs[k, 0]],
            target=names[found.pairs[k, 1]],
            first=finite(float(found.debiased[0, k])),
            second=finite(float(found.debiased[1, k])),
            differs=bool(found.q_value[k] <= fdr),
            **{
                name: finite(float(getattr(found, name)[k]))
                for name in (
                    "difference",
                    "standard_error",
                    "lower",
                    "upper",
                    "z",
                    "p_value",
                    "q_value",
                )
            },
        )
        for k in map(int, order)
    ]


def _network(side: Side, job_id: str) -> DifferenceNetworkRead:
    number = None if side.clusters is None else len(np.unique(side.clusters))
    return DifferenceNetworkRead(
        label=side.label, job_id=job_id, n_rows=len(side.table), n_clusters=number
    )


def _test(test: GlobalTest) -> GlobalTestRead:
    return GlobalTestRead(statistic=test.statistic, p_value=test.p_value)


def _label(first: int, end: int) -> str:
    """Return what a part computes."""
    begin, last = max(first, 1), end - 1
    permutations = f"permutations {begin} to {last}" if begin < last else f"permutation {last}"
    if first:
        return permutations
    return "the groups" if end == 1 else f"the groups and {permutations}"

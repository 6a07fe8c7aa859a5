"""Differences as jobs: permutations of the rows of two tables, some a part, put together."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from service.datasets import repository as datasets
from service.http.words import counted
from service.jobs.job_parts import PARTS_SHARE
from service.jobs.specs.base import planned
from service.jobs.specs.difference import DifferencePartSpec, DifferenceSpec
from service.jobs.specs.estimation import EstimationSpec
from service.results.difference_result import (
    ComparedNetworkRead,
    DifferenceEdgeRead,
    DifferencePartResult,
    DifferenceResult,
    GlobalTestRead,
)
from service.results.outcome import Outcome
from vnce_engine.data.tables import known_rows
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.estimators.difference import fit_permutations, refuse_small_group
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
    difference_artefacts,
    permutations_artefact,
    read_permutations,
)
from worker.artefacts.figures.drawing import label
from worker.artefacts.fitted import to_array
from worker.jobs.bootstrap import PART_FAILED
from worker.jobs.builders import build_estimator
from worker.jobs.estimated import Estimated, load_estimated
from worker.jobs.estimation import OnStep
from worker.jobs.failures import FitCancelledError, incompatible
from worker.jobs.network_document import finite
from worker.jobs.parts import FinishedParts, Split, this_process
from worker.jobs.resuming import resume_or_restart
from worker.jobs.versions import versions

# Of a part: of networks of twenty variables they take about a quarter of a minute.
_PERMUTATIONS = 5
_MOST_LISTED = 5
# From here on not every whole number is one.
_LARGEST_WHOLE = 2.0**53

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Side:
    """One of the two networks: what it is estimated by, and of which rows."""

    label: str
    estimated: Estimated
    # (n, d), NaN where missing, something observed in every row; columns in the first's order.
    table: FloatArray

    def estimator(self, column_transform: str | list[str] | None) -> NetworkEstimator:
        """Return what fits it by the choices that its estimation made, and these transforms."""
        held = build_estimator(self.estimated.spec).with_choices(self.estimated.choices)
        held.set_params(column_transform=column_transform)
        return held


@dataclass(frozen=True)
class Sides:
    """Both networks."""

    first: Side
    second: Side
    num_unlabelled: int = 0

    @property
    def names(self) -> list[str]:
        """The variables, in the first's order."""
        return self.first.estimated.result.names


@dataclass(frozen=True)
class PartRequest:
    """What a part is computed from."""

    spec: DifferencePartSpec
    sides: Sides
    checkpoint: Checkpoint | None


def load_sides(session: Session, spec: DifferenceSpec | DifferencePartSpec) -> Sides:
    """Return both networks; raises `JobFailedError` where one is gone, or groups do not do."""
    first = load_estimated(session, spec.job_id)
    table = datasets.load_table(session, first.spec.dataset_id).table
    if spec.by is not None:
        return groups_of(first, table, spec.by)
    second = load_estimated(session, planned(spec.other_job_id))
    other = datasets.load_table(session, second.spec.dataset_id).table
    return two_results(first, table, second, other)


def two_results(first: Estimated, table: pa.Table, second: Estimated, other: pa.Table) -> Sides:
    """Return two networks and the rows of their tables."""
    names = first.result.names
    labels = [one.result.dataset.name for one in (first, second)]
    if labels[0] == labels[1]:
        labels = [
            f"{name} ({place})" for name, place in zip(labels, ("first", "second"), strict=True)
        ]
    return Sides(
        Side(labels[0], first, known_rows(to_array(table.select(names)))),
        Side(labels[1], second, known_rows(to_array(other.select(names)))),
    )


def groups_of(estimated: Estimated, table: pa.Table, by: str) -> Sides:
    """Return the networks of two groups of rows; raises as `labelled_groups`."""
    groups = labelled_groups(estimated.spec, table, by)
    first, second = (Side(label, estimated, rows) for label, rows in groups.items())
    return Sides(first, second, table[by].null_count)


def labelled_groups(spec: EstimationSpec, table: pa.Table, by: str) -> dict[str, FloatArray]:
    """Return the rows of the variables that a column has either of two values for, by a label.

    Raises `JobFailedError` unless it has two different ones, and rows enough of each.
    """
    names = planned(spec.variables)
    values, rows = to_array(table.select([by]))[:, 0], to_array(table.select(names))
    found = np.unique(values[~np.isnan(values)])
    if len(found) != 2:
        listed = ", ".join(map(_shortest, found[:_MOST_LISTED]))
        more = ", …" if len(found) > _MOST_LISTED else ""
        raise incompatible(
            f"Column {by} has {counted(len(found), 'different value')} ({listed}{more}); groups "
            "are told by two."
        )
    groups = {f"{by} = {_shortest(value)}": known_rows(rows[values == value]) for value in found}
    for group, of_group in groups.items():
        try:
            refuse_small_group(build_estimator(spec), of_group, names)
        except ValueError as refusal:
            reason = str(refusal).rstrip(".")
            raise incompatible(f"{group}, {counted(len(of_group), 'row')}: {reason}.") from refusal
    return groups


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
        n: one for content in parts.contents for n, one in read_permutations(content).items()
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
    return Outcome(
        document=DifferenceResult(
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
        ),
        edges=[],
        artefacts=difference_artefacts(edges, labels, spec.fdr, title),
    )


def _estimates(sides: Sides) -> NetworkPair:
    """Return what both estimations found."""
    places = {name: place for place, name in enumerate(sides.names)}
    both = []
    for side in (sides.first, sides.second):
        names = side.estimated.result.names
        rows, columns = np.triu_indices(len(names), k=1)
        edges = zip(
            (places[names[i]] for i in rows),
            (places[names[j]] for j in columns),
            side.estimated.network.debiased,
            side.estimated.standard_error,
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


def _network(side: Side, job_id: str) -> ComparedNetworkRead:
    return ComparedNetworkRead(label=side.label, job_id=job_id, n_rows=len(side.table))


def _test(test: GlobalTest) -> GlobalTestRead:
    return GlobalTestRead(statistic=test.statistic, p_value=test.p_value)


def _label(first: int, end: int) -> str:
    """Return what a part computes."""
    begin, last = max(first, 1), end - 1
    permutations = f"permutations {begin} to {last}" if begin < last else f"permutation {last}"
    if first:
        return permutations
    return "the groups" if end == 1 else f"the groups and {permutations}"


def _shortest(value: float) -> str:
    """Return a number with no more digits than it needs."""
    number = float(value)
    is_whole = number.is_integer() and abs(number) < _LARGEST_WHOLE
    return str(int(number)) if is_whole else repr(number)

"""The two networks of a difference: of which rows each is, and by what it is fitted."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from service.datasets import repository as datasets
from service.datasets.readers.refusals import shorten
from service.http.words import counted
from service.jobs.specs.base import planned
from service.jobs.specs.difference import DifferencePartSpec, DifferenceSpec
from service.jobs.specs.estimation import EstimationSpec
from vnce_engine.data.clusters import Codes
from vnce_engine.data.tables import is_known
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.estimators.difference import refuse_shared_clusters, refuse_small_group
from worker.artefacts.fitted import cells_and_clusters
from worker.jobs.builders import build_estimator
from worker.jobs.estimated import Estimated, load_estimated
from worker.jobs.failures import incompatible

_MOST_LISTED = 5
# From here on not every whole number is one.
_LARGEST_WHOLE = 2.0**53

FloatArray = NDArray[np.float64]
# Rows, and the cluster of each where they are dependent.
Group = tuple[FloatArray, Codes | None]


@dataclass(frozen=True)
class Side:
    """One of the two networks: what it is estimated by, and of which rows."""

    label: str
    estimated: Estimated
    # (n, d), NaN where missing, something observed in every row; columns in the first's order.
    table: FloatArray
    # The cluster of each row; None where rows are independent.
    clusters: Codes | None

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
    def both(self) -> tuple[Side, Side]:
        """The first and the second."""
        return self.first, self.second

    @property
    def names(self) -> list[str]:
        """The variables, in the first's order."""
        return self.first.estimated.result.names


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
        Side(labels[0], first, *_known(*cells_and_clusters(first.spec, names, table))),
        Side(labels[1], second, *_known(*cells_and_clusters(second.spec, names, other))),
    )


def groups_of(estimated: Estimated, table: pa.Table, by: str) -> Sides:
    """Return the networks of two groups of rows; raises as `labelled_groups`."""
    groups = labelled_groups(estimated.spec, table, by)
    first, second = (Side(label, estimated, *group) for label, group in groups.items())
    return Sides(first, second, table[by].null_count)


def labelled_groups(spec: EstimationSpec, table: pa.Table, by: str) -> dict[str, Group]:
    """Return the rows of the variables that a column has either of two values for, by a label.

    The values are numbers or texts. Raises `JobFailedError` unless the column has two different
    ones, rows enough of each, and no cluster rows of both.
    """
    names = planned(spec.variables)
    values = table[by].to_numpy()
    rows, clusters = cells_and_clusters(spec, names, table)
    found = np.unique(table[by].drop_null().to_numpy()).tolist()
    if len(found) != 2:
        listed = ", ".join(map(_label, found[:_MOST_LISTED]))
        more = ", …" if len(found) > _MOST_LISTED else ""
        raise incompatible(
            f"Column {by} has {counted(len(found), 'different value')} ({listed}{more}); groups "
            "need a column of exactly two."
        )
    first, second = (np.flatnonzero(values == value) for value in found)
    if clusters is not None:
        try:
            refuse_shared_clusters(clusters[first], clusters[second])
        except ValueError as refusal:
            raise incompatible(f"{by} and {spec.cluster}: {refusal}.") from refusal
    groups = {
        f"{by} = {_label(value)}": _known(
            rows[chosen], None if clusters is None else clusters[chosen]
        )
        for value, chosen in zip(found, (first, second), strict=True)
    }
    for group, (of_group, _) in groups.items():
        try:
            refuse_small_group(build_estimator(spec), of_group, names)
        except ValueError as refusal:
            reason = str(refusal).rstrip(".")
            raise incompatible(f"{group}, {counted(len(of_group), 'row')}: {reason}.") from refusal
    return groups


def _known(rows: FloatArray, clusters: Codes | None) -> Group:
    """Return the rows with something observed, and their clusters."""
    known = is_known(rows)
    return rows[known], None if clusters is None else clusters[known]


def _label(value: float | str) -> str:
    return shorten(value) if isinstance(value, str) else shortest(value)


def shortest(value: float) -> str:
    """Return a number with no more digits than it needs."""
    number = float(value)
    is_whole = number.is_integer() and abs(number) < _LARGEST_WHOLE
    return str(int(number)) if is_whole else repr(number)

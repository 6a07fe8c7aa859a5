"""Each variable's place in an estimated network."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from service.results.formats import MediaType
from service.results.outcome import Artefact
from service.results.schemas import IntervalRead, VariableRead
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.inference.centrality import Centrality
from vnce_engine.inference.interval import Interval
from worker.artefacts.exports.csv_text import csv_bytes

_MEASURES = ("strength", "expected_influence", "predictability")


def variables_of(
    names: Sequence[str],
    estimator: NetworkEstimator,
    table: pa.Table,
    clusters: NDArray[np.float64] | None = None,
) -> list[VariableRead]:
    """Return the place of every column of `table`, to which `estimator` was fitted."""
    explained = estimator.predictability(table, clusters)
    central: Sequence[Centrality | None] = estimator.centrality_ or [None] * len(names)
    return [
        VariableRead(
            name=name,
            n_observed=len(column) - column.null_count,
            degree=None if found is None else found.degree,
            strength=None if found is None else _read(found.strength),
            expected_influence=None if found is None else _read(found.expected_influence),
            predictability=_read(share),
        )
        for name, column, found, share in zip(names, table.columns, central, explained, strict=True)
    ]


def variables_artefact(variables: Sequence[VariableRead]) -> Artefact:
    """Return `variables.csv`: a line a variable, each measure with the ends of its interval."""
    ends = [f"{measure}{end}" for measure in _MEASURES for end in ("", "_lower", "_upper")]
    rows = (
        [variable.name, variable.n_observed, variable.degree, *_figures(variable)]
        for variable in variables
    )
    header = ["variable", "n_observed", "degree", *ends]
    return Artefact("variables.csv", MediaType.CSV, csv_bytes(header, rows))


def _figures(variable: VariableRead) -> list[float | None]:
    intervals = [variable.strength, variable.expected_influence, variable.predictability]
    return [
        end
        for found in intervals
        for end in ([None] * 3 if found is None else [found.value, found.lower, found.upper])
    ]


def _read(interval: Interval | None) -> IntervalRead | None:
    if interval is None:
        return None
    return IntervalRead(value=interval.value, lower=interval.lower, upper=interval.upper)

"""One simulation: a table drawn from a truncated Gaussian of known graph, with holes."""

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import assert_never

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from service.datasets.lifecycle import prepare
from service.datasets.options import ReadLimits, ReadOptions
from service.http.problems import ProblemError, ProblemItem, problem_document
from service.jobs.specs.base import MIN_ROWS, planned
from service.jobs.specs.simulation import MIN_OBSERVED, SimulationSpec
from service.jobs.vocabulary import SimulatedGraph, Transform
from service.results.outcome import MadeDataset, Outcome
from service.results.simulation_result import SimulationResult
from vnce_engine.runtime.reports import FitStep
from vnce_engine.simulate import (
    hub_precision,
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)
from worker.artefacts.exports.tables import matrix_artefacts
from worker.jobs.estimation import OnStep
from worker.jobs.failures import FitCancelledError, JobFailedError, incompatible
from worker.jobs.versions import versions

Draw = Callable[[int, np.random.Generator], NDArray[np.float64]]


def simulate(spec: SimulationSpec, limits: ReadLimits, on_step: OnStep) -> Outcome:
    """Draw the graph, the rows and then the holes from one generator of the spec's seed.

    Raises `FitCancelledError` if `on_step` asks to stop, and `JobFailedError` if the table is
    larger than the service takes, or if the holes leave nothing to learn from.
    """
    rng = np.random.default_rng(planned(spec.seed))
    precision = _draw_of(spec.graph)(spec.n_variables, rng)
    _report(on_step, "sample", 0.0)
    X = sample_truncated_gaussian(precision, spec.n_rows, rng)
    _report(on_step, "sample", 0.8)
    X = mask_completely_at_random(X, spec.missing_fraction, rng)
    names = [f"x{position}" for position in range(1, spec.n_variables + 1)]
    _refuse_if_nothing_can_be_learnt(names, X)
    edges = [[names[i], names[j]] for i, j in np.argwhere(np.triu(precision, k=1) != 0)]
    try:
        data = prepare(_parquet(names, X), planned(spec.name), ReadOptions(), limits)
    except ProblemError as refusal:
        raise JobFailedError(problem_document(refusal.code, refusal.detail)) from refusal
    _report(on_step, "export", 0.95)
    return Outcome(
        document=SimulationResult(
            kind="simulation",
            dataset_id=data.id,
            dataset_name=data.name,
            names=names,
            n_rows=spec.n_rows,
            n_missing=int(np.isnan(X).sum()),
            n_edges=len(edges),
            diagonal=float(precision[0, 0]),
            seed=planned(spec.seed),
            versions=versions(),
        ),
        edges=[],
        artefacts=matrix_artefacts("precision", names, precision, Transform.NONE),
        dataset=MadeDataset(data, edges),
    )


def _draw_of(graph: SimulatedGraph) -> Draw:
    match graph:
        case SimulatedGraph.RING:
            return ring_precision
        case SimulatedGraph.HUB:
            return hub_precision
        case _ as unknown:
            assert_never(unknown)


def _refuse_if_nothing_can_be_learnt(names: Sequence[str], X: NDArray[np.float64]) -> None:
    """Raise `JobFailedError` unless any estimator could take the table X (n, d), NaN a hole."""
    observed = ~np.isnan(X)
    errors = []
    for name, column, is_there in zip(names, X.T, observed.T, strict=True):
        num_values = len(np.unique(column[is_there]))
        if num_values < MIN_OBSERVED:
            message = f"{MIN_OBSERVED} cells that differ are needed at least, got {num_values}."
            errors.append(ProblemItem(message=message, column=name))
    num_rows = int(observed.any(axis=1).sum())
    if num_rows < MIN_ROWS:
        message = f"{MIN_ROWS} rows with a cell are needed at least, got {num_rows}."
        errors.append(ProblemItem(message=message))
    if errors:
        raise incompatible(
            "Missing cells leave too few others to learn anything from; see `errors`. Ask for a "
            "smaller `missing_fraction`, for more rows, or for another seed.",
            errors,
        )


def _report(on_step: OnStep, stage: str, fraction: float) -> None:
    if on_step(FitStep(stage=stage, fraction=fraction, iteration=0, objective=None)):
        raise FitCancelledError


def _parquet(names: list[str], X: NDArray[np.float64]) -> BytesIO:
    columns = [pa.array(np.ascontiguousarray(column), from_pandas=True) for column in X.T]
    content = BytesIO()
    parquet.write_table(pa.table(columns, names=names), content)
    content.seek(0)
    return content

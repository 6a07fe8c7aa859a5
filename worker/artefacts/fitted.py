"""A finished fit, and what is derived from it once for documents, files and figures alike."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from service.datasets.stored_table import Texts
from service.jobs.specs.base import planned
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.vocabulary import Transform
from service.results.choices import AppliedTransforms
from service.results.edges import Edge
from service.results.schemas import VariableRead
from service.results.vocabulary import EdgeScore, Verdict
from vnce_engine.data.clusters import Codes, cluster_codes
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.inference.metrics import EdgeROC
from worker.artefacts.exports.roc import adjacency, roc_curves
from worker.artefacts.ground_truth import Pair
from worker.artefacts.variables import variables_of

NO_PARTIAL_CORRELATIONS = (
    "K is not positive definite: there is no parent Gaussian, so there are no partial correlations"
)


def applied(transform: str | Sequence[str]) -> AppliedTransforms:
    """Return the engine's words for a transform, or for one of each variable, as the service's."""
    if isinstance(transform, str):
        return Transform(transform)
    return [Transform(name) for name in transform]


def edges_of(names: Sequence[str], estimator: NetworkEstimator) -> list[Edge]:
    """Return all pairs of the network that a fit has found, strongest first."""
    return [
        Edge(
            **{
                **vars(edge),
                "source": names[edge.source],
                "target": names[edge.target],
                "partial_correlation": _known(edge.partial_correlation),
                "verdict": None if edge.verdict is None else Verdict(edge.verdict),
            }
        )
        for edge in estimator.edges_
    ]


@dataclass(frozen=True)
class FittedNetwork:
    """An estimated network by the names of its variables."""

    spec: EstimationSpec
    dataset_name: str
    estimator: NetworkEstimator
    # A column of doubles a variable, null where no number is known.
    table: pa.Table
    # What was read for its numbers; None where the upload had no texts.
    texts: Texts | None
    # The same (n, d), NaN where null.
    X: NDArray[np.float64]
    # All pairs, strongest first.
    edges: list[Edge]
    variables: list[VariableRead]
    truth: frozenset[Pair] | None
    # One a score; None without a true graph.
    roc_curves: Mapping[EdgeScore, EdgeROC] | None

    @property
    def transform(self) -> AppliedTransforms:
        """The transform of all variables, or of each."""
        return applied(self.estimator.column_transform_)

    @classmethod
    def of(
        cls,
        spec: EstimationSpec,
        dataset_name: str,
        estimator: NetworkEstimator,
        table: pa.Table,
        texts: Texts | None,
        truth: frozenset[Pair] | None,
        clusters: NDArray[np.float64] | None = None,
    ) -> Self:
        """Return the network that `estimator`, fitted to `table` in `clusters`, has found."""
        names = planned(spec.variables)
        edges = edges_of(names, estimator)
        curves = (
            None if truth is None else roc_curves(estimator.precision_, adjacency(names, truth))
        )
        return cls(
            spec=spec,
            dataset_name=dataset_name,
            estimator=estimator,
            table=table,
            texts=texts,
            X=to_array(table),
            edges=edges,
            variables=variables_of(names, estimator, table, clusters),
            truth=truth,
            roc_curves=curves,
        )

    @property
    def reason(self) -> str | None:
        """Why there are no partial correlations; None where there are."""
        is_positive_definite = self.estimator.diagnostics_.is_positive_definite
        return None if is_positive_definite else NO_PARTIAL_CORRELATIONS


def _known(correlation: float) -> float | None:
    return None if math.isnan(correlation) else correlation


def cluster_labels(spec: EstimationSpec, table: pa.Table) -> NDArray[np.float64] | None:
    """Return the label (n,) of each row's cluster in a data set's table; None without clusters."""
    return None if spec.cluster is None else table[spec.cluster].to_numpy()


def cells_and_clusters(
    spec: EstimationSpec, names: Sequence[str], table: pa.Table
) -> tuple[NDArray[np.float64], Codes | None]:
    """Return the cells (n, d) of an estimation's variables, and the codes (n,) of its clusters."""
    labels = cluster_labels(spec, table)
    codes = None if labels is None else cluster_codes(labels, len(labels))
    return to_array(table.select(names)), codes


def to_array(table: pa.Table) -> NDArray[np.float64]:
    """Return the columns as an array (n, d), NaN where a value is null."""
    return np.column_stack([column.to_numpy() for column in table.columns])

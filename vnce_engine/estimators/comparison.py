"""Several models of one table: which describes rows that it has not seen, where networks differ.

Each is fitted to the whole table, and without each fold, the same folds for all, whose rows judge
it by their log density in the table's units.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from numpy.typing import ArrayLike
from sklearn.base import clone

from vnce_engine.data.clusters import cluster_codes
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.estimators.held_out_density import HeldOutDensity, held_out_density
from vnce_engine.estimators.seeds import RandomState, seed_of
from vnce_engine.inference.result import Edge
from vnce_engine.runtime.checks import check_count
from vnce_engine.runtime.progress import FitCancelledError, OnStep, within
from vnce_engine.runtime.reports import FitStatus
from vnce_engine.selection.held_out_gains import Standing, standings

_MOST_FOLDS = 100


@dataclass(frozen=True)
class ComparedModel(Standing):
    """A model, and what held-out rows say of it."""

    estimator: NetworkEstimator
    """Fitted to the whole table."""
    held_out: HeldOutDensity
    """The log density of each row, or why there are none."""


@dataclass(frozen=True)
class ComparedPair:
    """A pair of columns that some model selects, by their positions."""

    source: int
    target: int
    edges: Mapping[str, Edge]
    """The pair in each model, by the model's name."""

    @property
    def is_agreed(self) -> bool:
        """Whether all models select it, but for those without partial correlations."""
        known = (edge for edge in self.edges.values() if not math.isnan(edge.partial_correlation))
        return all(edge.selected for edge in known)


@dataclass(frozen=True)
class Comparison:
    """Several models of a table."""

    models: list[ComparedModel]
    """The best first; those without a density last."""
    agreed: list[ComparedPair]
    """Pairs that all models select, but for those without partial correlations, by column."""
    disputed: list[ComparedPair]
    """Pairs that some select and others do not."""


def compare(
    estimators: Mapping[str, NetworkEstimator],
    X: ArrayLike,
    n_folds: int = 5,
    random_state: RandomState = 0,
    on_step: OnStep | None = None,
    clusters: ArrayLike | None = None,
) -> Comparison:
    """Return how estimators, unfitted and by names of one's own, describe X (n, d).

    `random_state` deals the rows to folds; `clusters` (n,), as of `fit`, stay in one. `on_step` is
    called as by `fit`; returning True raises `FitCancelledError`. Where a fit without some fold is
    refused or has no density, the model has none, and `held_out.reason` says why.

    Raises `ValueError` unless there are two estimators and 2 to 100 folds, and what `fit` to all of
    X raises.
    """
    if len(estimators) < 2:
        raise ValueError(f"`estimators` must be two or more, got {len(estimators)}")
    check_count("n_folds", n_folds, least=2, most=_MOST_FOLDS)
    seed = seed_of(random_state)
    whole: dict[str, NetworkEstimator] = {}
    held_out: dict[str, HeldOutDensity] = {}
    for position, (name, estimator) in enumerate(estimators.items()):
        report = within(on_step, position, len(estimators), name)
        fitted = whole[name] = clone(estimator)
        fitted.fit(X, on_step=within(report, 0, n_folds + 1, name), clusters=clusters)
        if fitted.status_ is FitStatus.CANCELLED:
            raise FitCancelledError
        table = fitted.read(X)
        codes = None if clusters is None else cluster_codes(clusters, len(table))
        held_out[name] = held_out_density(
            estimator, X, table, n_folds, seed, report, clusters=codes
        )
    of_rows = next(iter(held_out.values())).clusters
    ranked = standings({name: one.log_densities for name, one in held_out.items()}, of_rows)
    pairs = _pairs(whole)
    return Comparison(
        [
            ComparedModel(**vars(one), estimator=whole[one.name], held_out=held_out[one.name])
            for one in ranked
        ],
        [pair for pair in pairs if pair.is_agreed],
        [pair for pair in pairs if not pair.is_agreed],
    )


def _pairs(fitted: Mapping[str, NetworkEstimator]) -> list[ComparedPair]:
    """Return the pairs that some estimator selects."""
    by_pair: dict[tuple[int, int], dict[str, Edge]] = {}
    for name, estimator in fitted.items():
        for edge in estimator.edges_:
            by_pair.setdefault((edge.source, edge.target), {})[name] = edge
    return [
        ComparedPair(*pair, edges)
        for pair, edges in sorted(by_pair.items())
        if any(edge.selected for edge in edges.values())
    ]

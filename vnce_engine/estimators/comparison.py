"""Several models of one table: which describes rows that it has not seen, where networks differ.

Each is fitted to the whole table, and without each fold, the same folds for all, whose rows judge
it by their log density in the table's units. All that a fit chooses is chosen anew in each.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from vnce_engine.data.table_transform import least_positive
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.estimators.seeds import RandomState, seed_of
from vnce_engine.inference.result import Edge
from vnce_engine.runtime.checks import check_count
from vnce_engine.runtime.progress import FitCancelledError, OnStep, within
from vnce_engine.runtime.reports import FitStatus
from vnce_engine.selection.held_out_gains import mean_and_error

FloatArray = NDArray[np.float64]

_MOST_FOLDS = 100


@dataclass(frozen=True)
class ComparedModel:
    """A model, and what held-out rows say of it."""

    name: str
    estimator: NetworkEstimator
    """Fitted to the whole table."""
    log_density: float
    """Mean log density of held-out rows' observed cells, nats a row, in the table's units; NaN
    where K was not positive definite without some fold."""
    standard_error: float
    """Of its difference from the best one's, row by row; 0 for the best."""


@dataclass(frozen=True)
class ComparedPair:
    """A pair of columns that some model selects, by their positions."""

    source: int
    target: int
    edges: Mapping[str, Edge]
    """The pair in each model, by the model's name."""

    @property
    def is_agreed(self) -> bool:
        """Whether all models select it."""
        return all(edge.selected for edge in self.edges.values())


@dataclass(frozen=True)
class Comparison:
    """Several models of a table."""

    models: list[ComparedModel]
    """The best first."""
    agreed: list[ComparedPair]
    """Pairs that all models select, in the order of the columns."""
    disputed: list[ComparedPair]
    """Pairs that some select and others do not."""


def compare(
    estimators: Mapping[str, NetworkEstimator],
    X: ArrayLike,
    n_folds: int = 5,
    random_state: RandomState = 0,
    on_step: OnStep | None = None,
) -> Comparison:
    """Return how estimators, unfitted and by names of one's own, describe X (n, d).

    `random_state` deals the rows to folds. A cell of 0, where some transforms are infinitely steep,
    counts as the values up to half of the least positive one of its column. `on_step` is called as
    by `fit`; returning True raises `FitCancelledError`.

    Raises `ValueError` unless there are two estimators and 2 to 100 folds, and what `fit` raises,
    also where a column is too rare, or constant, without some fold.
    """
    if len(estimators) < 2:
        raise ValueError(f"`estimators` must be two or more, got {len(estimators)}")
    check_count("n_folds", n_folds, least=2, most=_MOST_FOLDS)
    fits = _Fits(len(estimators) * (n_folds + 1), on_step)
    whole = {name: fits.fit(name, estimator, X) for name, estimator in estimators.items()}
    table = next(iter(whole.values())).read(X)
    known = table[~np.isnan(table).all(axis=1)]
    order = np.random.default_rng(seed_of(random_state)).permutation(len(known))
    held_out = {
        name: _held_out(fits, name, estimator, known, np.array_split(order, n_folds))
        for name, estimator in estimators.items()
    }
    means = {name: float(values.mean()) for name, values in held_out.items()}
    ranked = sorted(means, key=lambda name: (np.isnan(means[name]), -means[name]))
    best = held_out[ranked[0]]
    models = [
        ComparedModel(name, whole[name], means[name], _error(held_out[name] - best))
        for name in ranked
    ]
    pairs = _pairs(whole)
    return Comparison(
        models,
        [pair for pair in pairs if pair.is_agreed],
        [pair for pair in pairs if not pair.is_agreed],
    )


@dataclass
class _Fits:
    """Fits one after the other, a share of the whole each."""

    number: int
    on_step: OnStep | None
    num_done: int = 0

    def fit(self, name: str, estimator: NetworkEstimator, X: ArrayLike) -> NetworkEstimator:
        fitted: NetworkEstimator = clone(estimator)
        fitted.fit(X, on_step=within(self.on_step, self.num_done, self.number, name))
        self.num_done += 1
        if fitted.status_ is FitStatus.CANCELLED:
            raise FitCancelledError
        return fitted


def _held_out(
    fits: _Fits,
    name: str,
    estimator: NetworkEstimator,
    rows: FloatArray,
    folds: list[NDArray[np.intp]],
) -> FloatArray:
    """Return each row's log density (n,) by a fit that has not seen it, NaN where there is none."""
    values, least = np.full(len(rows), np.nan), least_positive(rows)
    for fold in folds:
        fitted = fits.fit(name, estimator, np.delete(rows, fold, axis=0))
        if fitted.diagnostics_.is_positive_definite:
            values[fold] = fitted.log_densities(rows[fold], least)[0]
    return values


def _error(differences: FloatArray) -> float:
    return mean_and_error(torch.from_numpy(differences))[1]


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

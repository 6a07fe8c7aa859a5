"""Whether two networks differ: those of two tables, or of two groups of the rows of one.

What the fits have chosen, transforms, penalties and the linear term, is held where permuted tables
are fitted. Of groups it is what the fit to all rows has chosen, which no permutation changes; both
groups are fitted by it, with the same noise.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from vnce_engine.data.columns import refuse_rare_columns, refuse_unusable_columns
from vnce_engine.data.observations import MIN_ROWS, Observations
from vnce_engine.data.tables import known_rows
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.estimators.refits import refusal_of_fit
from vnce_engine.estimators.seeds import RandomState, numbered_generator, seed_of
from vnce_engine.inference.differences import Difference, NetworkPair, compare_pairs, of_pairs
from vnce_engine.inference.resamples import Failure
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.checks import check_count, listed, shown
from vnce_engine.runtime.progress import OnStep, within

FloatArray = NDArray[np.float64]

MOST_PERMUTATIONS = 2_000


def difference(
    first: NetworkEstimator,
    second: NetworkEstimator,
    tables: tuple[ArrayLike, ArrayLike] | None = None,
    n_permutations: int = 0,
    random_state: RandomState = 0,
    on_step: OnStep | None = None,
) -> Difference:
    """Return how the networks of two estimators differ, each fitted to a table of its own.

    The tables have no row in common, and the same columns; where these have names, in any order.
    With `n_permutations`, up to 2,000, and the `tables` (n, d) and (n', d) of the fits, networks
    are compared as a whole, too. `on_step` is called as by `fit`; returning True raises
    `FitCancelledError`.

    Raises `ValueError` that says what differs, where models, linear terms, transforms or columns
    do; where a network has no standard errors; and with permutations where a graph was chosen by
    half-samples. `NotFittedError` for an estimator that is not fitted.
    """
    check_is_fitted(first)
    check_is_fitted(second)
    check_count("n_permutations", n_permutations, least=0, most=MOST_PERMUTATIONS)
    order = _same_columns(first, second)
    _refuse_incomparable(first, second, order)
    width = len(order)
    observed = _network_pair(first, second, order)
    permuted: list[NetworkPair | Failure] = []
    if n_permutations:
        if tables is None:
            raise ValueError("`n_permutations` needs `tables`, the two that were fitted")
        rows = known_rows(first.read(tables[0])), known_rows(second.read(tables[1])[:, order])
        fits = held(first, first.column_transform_), held(second, first.column_transform_)
        numbers = range(1, n_permutations + 1)
        permuted = fit_permutations(fits, rows, numbers, seed_of(random_state), on_step)
    return compare_pairs(observed, permuted, width, n_permutations)


def group_difference(
    estimator: NetworkEstimator,
    X: ArrayLike,
    groups: ArrayLike,
    n_permutations: int = 199,
    random_state: RandomState = 0,
    on_step: OnStep | None = None,
) -> Difference:
    """Return how networks of two groups of the rows of X (n, d) differ, `estimator` fitted to X.

    `groups` (n,) has one of two labels, numbers or texts, for each row, and None or NaN for rows
    of neither; the first group is that of the lesser. No column of X may be made of them.
    `on_step` is called as by `fit`; returning True raises `FitCancelledError`.

    Raises `ValueError` for another number of labels, a group that has too few rows or a column
    that is useless there, a group's network without standard errors, a graph that was chosen by
    half-samples, and unless there are 0 to 2,000 permutations; `NotFittedError` for an estimator
    that is not fitted.
    """
    check_is_fitted(estimator)
    check_count("n_permutations", n_permutations, least=0, most=MOST_PERMUTATIONS)
    table = estimator.read(X)
    first, second = (table[rows] for rows in _groups(groups, len(table)))
    tables = known_rows(first), known_rows(second)
    names = estimator.get_feature_names_out()
    for rows in tables:
        refuse_small_group(estimator, rows, names)
    fit = held(estimator, estimator.column_transform_)
    numbers = range(n_permutations + 1)
    observed, *permuted = fit_permutations(
        (fit, fit), tables, numbers, seed_of(random_state), on_step
    )
    if isinstance(observed, Failure):
        raise ValueError(f"the groups' networks cannot be compared: {observed.cause}")
    return compare_pairs(observed, permuted, table.shape[1], n_permutations)


def held(
    estimator: NetworkEstimator, column_transform: str | Sequence[str] | None
) -> NetworkEstimator:
    """Return it unfitted, with what its fit has chosen, and these transforms of the columns."""
    unfitted = estimator.with_choices(estimator.choices())
    unfitted.set_params(column_transform=column_transform)
    return unfitted


def fit_permutations(
    fits: tuple[NetworkEstimator, NetworkEstimator],
    tables: tuple[FloatArray, FloatArray],
    numbers: Sequence[int],
    seed: int,
    on_step: OnStep | None = None,
    checkpoint: Checkpoint | None = None,
) -> list[NetworkPair | Failure]:
    """Fit each of two unfitted estimators to a table, their rows permuted among the two.

    A number stands for one permutation in any company, and 0 for rows left where they are. The
    `tables` (n, d) and (n', d) have the same columns, and something observed in every row. A pair
    of fits has the same random draws, so that of equal tables the networks are equal. With the
    checkpoint of an interrupted run of the same it goes on from there.
    """
    pooled = np.vstack(tables)
    checkpoint = checkpoint or Checkpoint()
    # Seeds are set below, by fits that an interrupted run may have used.
    made_of = [(type(fit).__name__, fit.get_params() | {"random_state": None}) for fit in fits]
    name = Observations.from_array(pooled).name_of_fit((made_of, len(tables[0]), numbers), seed)
    checkpoint.begin_fit(name)

    def fit_side(position: int, number: int, side: int) -> Tensor | str:
        rng = numbered_generator(seed, number)
        fit = fits[side].set_params(random_state=int(rng.integers(2**63 - 1)))
        rows = rng.permutation(len(pooled)) if number else np.arange(len(pooled))
        of_side = np.split(pooled[rows], [len(tables[0])])[side]
        stage = f"permutation {number}" if number else "groups"
        report = within(on_step, 2 * position + side, 2 * len(numbers), stage)
        refusal = refusal_of_fit(fit, of_side, report, checkpoint)
        if refusal is not None:
            return f"refused: {refusal}"
        if fit.no_uncertainty_ is not None:
            return str(fit.no_uncertainty_)
        return torch.from_numpy(_estimates(fit, range(pooled.shape[1])))

    def outcome(position: int, number: int) -> NetworkPair | Failure:
        first, second = (
            checkpoint.once(partial(fit_side, position, number, side)) for side in (0, 1)
        )
        if isinstance(first, str) or isinstance(second, str):
            return Failure(first if isinstance(first, str) else str(second))
        return NetworkPair(*torch.stack([first, second], dim=1).numpy())

    return [outcome(position, number) for position, number in enumerate(numbers)]


def refuse_small_group(estimator: NetworkEstimator, rows: FloatArray, names: Sequence[str]) -> None:
    """Raise `ValueError` unless a group's rows (n, d) with something observed can be fitted."""
    if len(rows) < MIN_ROWS:
        raise ValueError(
            f"a group must have at least {MIN_ROWS} rows with an observed value, got {len(rows)}"
        )
    who, may_be_negative = type(estimator).__name__, not _is_positive_only(estimator)
    refuse_unusable_columns(rows, names, who, may_be_negative=may_be_negative)
    refuse_rare_columns(rows, names, who, estimator.min_observed)


def _estimates(estimator: NetworkEstimator, order: Sequence[int]) -> FloatArray:
    """Return what is known of pairs (3, m), as `of_pairs`, the columns brought into an order."""
    places = {column: place for place, column in enumerate(order)}
    edges = (
        (
            places[edge.source],
            places[edge.target],
            edge.debiased,
            edge.standard_error,
            edge.n_pairwise,
        )
        for edge in estimator.edges_
    )
    return of_pairs(edges, len(order))


def _network_pair(
    first: NetworkEstimator, second: NetworkEstimator, order: Sequence[int]
) -> NetworkPair:
    both = _estimates(first, range(len(order))), _estimates(second, order)
    return NetworkPair(*np.stack(both, axis=1))


def _same_columns(first: NetworkEstimator, second: NetworkEstimator) -> list[int]:
    """Return where the second has the first's columns, in their order."""
    names, others = (getattr(one, "feature_names_in_", None) for one in (first, second))
    if names is None or others is None:
        if first.n_features_in_ != second.n_features_in_:
            raise ValueError(
                f"the networks have {first.n_features_in_} and {second.n_features_in_} columns"
            )
        return list(range(first.n_features_in_))
    if only := [*set(names).symmetric_difference(others)]:
        raise ValueError(f"columns that one of the networks lacks: {listed(sorted(only))}")
    places = {name: place for place, name in enumerate(others)}
    return [places[name] for name in names]


def _refuse_incomparable(
    first: NetworkEstimator, second: NetworkEstimator, order: Sequence[int]
) -> None:
    if _is_positive_only(first) != _is_positive_only(second):
        raise ValueError(f"the models differ: {type(first).__name__} and {type(second).__name__}")
    terms = first.choices().linear, second.choices().linear
    if terms[0] != terms[1]:
        raise ValueError(
            f"the linear terms differ: {terms[0]!r} and {terms[1]!r}; set `linear` for both"
        )
    if _transforms(first, range(len(order))) != _transforms(second, order):
        raise ValueError(
            f"the transforms differ: {shown(first.column_transform_)} and "
            f"{shown(second.column_transform_)}; set `column_transform` for both"
        )
    for which, one in (("first", first), ("second", second)):
        if one.no_uncertainty_ is not None:
            raise ValueError(f"the {which} network has no standard errors: {one.no_uncertainty_}")


def _is_positive_only(estimator: NetworkEstimator) -> bool:
    return bool(get_tags(estimator).input_tags.positive_only)


def _transforms(estimator: NetworkEstimator, order: Sequence[int]) -> list[str]:
    transform = estimator.column_transform_
    return [transform if isinstance(transform, str) else transform[j] for j in order]


def _groups(groups: ArrayLike, num_rows: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows of each of two groups, that of the lesser label first."""
    given = np.asarray(groups, dtype=object)
    if given.shape != (num_rows,):
        raise ValueError(
            f"`groups` must have a label for each of {num_rows} rows, got {given.shape}"
        )
    known = np.array([label is not None and label == label for label in given])
    labels = np.array(given[known].tolist())
    found = np.unique(labels)
    if len(found) != 2:
        shown_labels = listed([str(label) for label in found])
        raise ValueError(
            f"`groups` must have two different labels, got {len(found)}: {shown_labels}"
        )
    rows = np.flatnonzero(known)
    return rows[labels == found[0]], rows[labels == found[1]]

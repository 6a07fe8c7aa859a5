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

from vnce_engine.data.clusters import Codes, is_missing, own_clusters, rows_of
from vnce_engine.data.columns import refuse_rare_columns, refuse_unusable_columns
from vnce_engine.data.observations import MIN_ROWS, Observations
from vnce_engine.data.tables import is_known, known_rows
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.estimators.refits import codes_as_fitted, refusal_of_fit
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
    clusters: tuple[ArrayLike | None, ArrayLike | None] = (None, None),
) -> Difference:
    """Return how the networks of two estimators differ, each fitted to a table of its own.

    The tables have no row in common, and no cluster; they have the same columns, where these have
    names in any order. With `n_permutations`, up to 2,000, and the `tables` (n, d) and (n', d) of
    the fits, networks are compared as a whole, too; with the `clusters` (n,) and (n',) of the fits,
    if they had any, of which whole ones are permuted. `on_step` is called as by `fit`; returning
    True raises `FitCancelledError`.

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
        read = first.read(tables[0]), second.read(tables[1])[:, order]
        labels = (
            codes_as_fitted(first, clusters[0], len(read[0])),
            codes_as_fitted(second, clusters[1], len(read[1])),
        )
        fits = held(first, first.column_transform_), held(second, first.column_transform_)
        numbers = range(1, n_permutations + 1)
        permuted = fit_permutations(
            fits, read, numbers, seed_of(random_state), on_step, clusters=labels
        )
    return compare_pairs(observed, permuted, width, n_permutations)


def group_difference(
    estimator: NetworkEstimator,
    X: ArrayLike,
    groups: ArrayLike,
    n_permutations: int = 199,
    random_state: RandomState = 0,
    on_step: OnStep | None = None,
    clusters: ArrayLike | None = None,
) -> Difference:
    """Return how networks of two groups of the rows of X (n, d) differ, `estimator` fitted to X.

    `groups` (n,) has one of two labels, numbers or texts, for each row, and None or NaN for rows of
    neither; the first group is that of the lesser. No column of X may be made of them. With the
    `clusters` (n,) of the fit whole ones are permuted, each of them in one group. `on_step` is
    called as by `fit`; returning True raises `FitCancelledError`.

    Raises `ValueError` for another number of labels, a cluster with rows in both groups, a group
    that has too few rows or a column that is useless there, a group's network without standard
    errors, a graph that was chosen by half-samples, and unless there are 0 to 2,000 permutations;
    `NotFittedError` for an estimator that is not fitted.
    """
    check_is_fitted(estimator)
    check_count("n_permutations", n_permutations, least=0, most=MOST_PERMUTATIONS)
    table = estimator.read(X)
    codes = codes_as_fitted(estimator, clusters, len(table))
    first, second = _groups(groups, len(table))
    if codes is not None:
        refuse_shared_clusters(codes[first], codes[second])
    tables = table[first], table[second]
    labels = (None, None) if codes is None else (codes[first], codes[second])
    names = estimator.get_feature_names_out()
    for rows in tables:
        refuse_small_group(estimator, known_rows(rows), names)
    fit = held(estimator, estimator.column_transform_)
    numbers = range(n_permutations + 1)
    observed, *permuted = fit_permutations(
        (fit, fit), tables, numbers, seed_of(random_state), on_step, clusters=labels
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
    clusters: tuple[Codes | None, Codes | None] = (None, None),
) -> list[NetworkPair | Failure]:
    """Fit each of two unfitted estimators to a table, their rows permuted among the two.

    Rows with something observed; or whole `clusters` (n,) and (n',), as many to either table as it
    has. A number stands for one permutation in any company, and 0 for rows left where they are. The
    `tables` (n, d) and (n', d) have the same columns. A pair of fits has the same random draws, so
    that of equal tables the networks are equal. With the checkpoint of an interrupted run of the
    same it goes on from there.
    """
    sides = [_known(*side) for side in zip(tables, clusters, strict=True)]
    pooled = np.vstack([rows for rows, _ in sides])
    sizes = [int(codes.max()) + 1 for _, codes in sides]
    codes = np.concatenate([sides[0][1], sizes[0] + sides[1][1]])
    has_clusters = any(given is not None for given in clusters)
    labels = codes if has_clusters else None
    checkpoint = checkpoint or Checkpoint()
    # Seeds are set below, by fits that an interrupted run may have used.
    made_of = [(type(fit).__name__, fit.get_params() | {"random_state": None}) for fit in fits]
    observations = Observations.from_array(pooled, labels)
    checkpoint.begin_fit(observations.name_of_fit((made_of, len(sides[0][0]), numbers), seed))

    def fit_side(position: int, number: int, side: int) -> Tensor | str:
        rng = numbered_generator(seed, number)
        fit = fits[side].set_params(random_state=int(rng.integers(2**63 - 1)))
        order = rng.permutation(sum(sizes)) if number else np.arange(sum(sizes))
        rows, own = rows_of(codes, np.split(order, [sizes[0]])[side])
        stage = f"permutation {number}" if number else "groups"
        report = within(on_step, 2 * position + side, 2 * len(numbers), stage)
        refusal = refusal_of_fit(
            fit, pooled[rows], report, checkpoint, own if has_clusters else None
        )
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


def _known(table: FloatArray, clusters: Codes | None) -> tuple[FloatArray, Codes]:
    """Return the rows of a table with something observed, and the codes of their clusters."""
    known = is_known(table)
    if clusters is None:
        return table[known], own_clusters(int(known.sum()))
    return table[known], np.unique(clusters[known], return_inverse=True)[1]


def refuse_shared_clusters(first: Codes, second: Codes) -> None:
    """Raise `ValueError` where clusters have rows in both groups, whose codes these are."""
    if shared := len(np.intersect1d(first, second)):
        raise ValueError(
            f"{shared} of the clusters have rows in both groups: their networks are compared as "
            "those of independent rows, so that a cluster may be in one group alone"
        )


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
    clusters = estimator.diagnostics_.num_clusters
    edges = (
        (
            places[edge.source],
            places[edge.target],
            edge.debiased,
            edge.standard_error,
            edge.n_pairwise if clusters is None else min(edge.n_pairwise, clusters),
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
    known = np.array([not is_missing(label) for label in given])
    labels = np.array(given[known].tolist())
    found = np.unique(labels)
    if len(found) != 2:
        shown_labels = listed([str(label) for label in found])
        raise ValueError(
            f"`groups` must have two different labels, got {len(found)}: {shown_labels}"
        )
    rows = np.flatnonzero(known)
    return rows[labels == found[0]], rows[labels == found[1]]

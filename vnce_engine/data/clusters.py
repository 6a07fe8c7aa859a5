"""Clusters of rows: rows with the same label are dependent, those with different labels are not.

Inside, labels are codes: whole numbers from 0, in the order in which they first occur.
"""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

Codes = NDArray[np.int64]

# Folds of fewer would be without rows, and of two or less nobody knows how they vary.
MIN_CLUSTERS = 3


def cluster_codes(labels: ArrayLike, num_rows: int) -> Codes:
    """Return the codes (n,) of labels, numbers or texts, one for each row.

    Raises `ValueError` for another number of labels, and naming the row of a missing one.
    """
    given = np.asarray(labels, dtype=object)
    if given.shape != (num_rows,):
        raise ValueError(
            f"`clusters` must have a label for each of {num_rows} rows, got {given.shape}"
        )
    for row, label in enumerate(given):
        if is_missing(label):
            raise ValueError(
                f"`clusters` must have a label for each row, got {label!r} in row {row} (counted "
                "from 0)"
            )
    codes: dict[object, int] = {}
    try:
        found = [codes.setdefault(label, len(codes)) for label in given]
    except TypeError as error:  # of what has no hash
        raise ValueError(f"`clusters` must be numbers or texts: {error}") from error
    return np.array(found, dtype=np.int64)


def is_missing(label: Any) -> bool:  # Any: of an array or a data frame of some library
    """Return whether a label is None, NaN, or what data frames have in their place."""
    if label is None or label is np.ma.masked:
        return True
    differs = label != label
    if isinstance(differs, bool | np.bool_):
        return bool(differs)
    # A missing value of a data frame is so also when it is compared.
    return differs is label


def refuse_few_clusters(num_clusters: int) -> None:
    """Raise `ValueError` unless there are three clusters with something observed."""
    if num_clusters < MIN_CLUSTERS:
        raise ValueError(
            f"`clusters` must have at least {MIN_CLUSTERS} different labels among the rows with an "
            f"observed value, got {num_clusters}"
        )


def renumbered(codes: Tensor) -> Tensor:
    """Return int64 (n,): the same clusters, numbered anew from 0 as they first occur."""
    labels, of_row = torch.unique(codes, return_inverse=True)
    places = torch.arange(len(codes), device=codes.device)
    first = places.new_full((len(labels),), len(codes))
    first = first.scatter_reduce(0, of_row, places, "amin")
    return first.argsort().argsort()[of_row]


def own_clusters(num_rows: int) -> Codes:
    """Return the codes (n,) of independent rows, each a cluster of its own."""
    return np.arange(num_rows)


def rows_of(codes: Codes, chosen: Codes) -> tuple[NDArray[np.intp], Codes]:
    """Return the rows of some clusters one after the other, and their place in `chosen` by row.

    A cluster that is chosen twice has its rows twice, as two clusters.
    """
    sizes = np.bincount(codes)
    members = np.split(np.argsort(codes, kind="stable"), np.cumsum(sizes)[:-1])
    rows = np.concatenate([members[one] for one in chosen])
    return rows, np.repeat(np.arange(len(chosen)), sizes[chosen])


def deal(
    num_rows: int, codes: Codes | None, num_folds: int, rng: np.random.Generator
) -> list[NDArray[np.intp]]:
    """Return the rows dealt to folds at random, the rows of a cluster to the same one."""
    if codes is None:
        return np.array_split(rng.permutation(num_rows), num_folds)
    order = rng.permutation(int(codes.max()) + 1)
    return [rows_of(codes, of_fold)[0] for of_fold in np.array_split(order, num_folds)]


def error_of_mean(values: Tensor, clusters: Tensor | None) -> float:
    """Return the standard error of the mean of values (n,), in clusters where these are given.

    The sums of clusters vary where rows of one are alike, with the usual factor g / (g - 1) of g
    clusters: of rows each in a cluster of its own it is the error of independent rows.
    """
    if clusters is None:
        return float(values.std() / math.sqrt(len(values)))
    sums = values.new_zeros(int(clusters.max()) + 1)
    sums = sums.index_add(0, clusters, values - values.mean())
    number = len(sums)
    variance = float(sums.square().sum()) * number / (number - 1) if number > 1 else math.nan
    return math.sqrt(variance) / len(values)

"""Labels of clusters, and tables that carry them."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from vnce_engine.data.canonical import canonical_order
from vnce_engine.data.clusters import (
    cluster_codes,
    deal,
    error_of_mean,
    own_clusters,
    renumbered,
    rows_of,
)
from vnce_engine.data.observations import Observations


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b", "c"],
        [7.5, -1, 7.5, 2],
        np.array([2, 1, 2, 0]),
        pd.Series(["x", "y", "x", "z"], dtype="category"),
        pd.Series(["x", "y", "x", "z"], dtype="string"),
        [False, True, False, 2],
    ],
)
def test_codes_are_in_the_order_in_which_labels_occur(labels: Any) -> None:
    np.testing.assert_array_equal(cluster_codes(labels, 4), [0, 1, 0, 2])


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, np.nan])
def test_a_missing_label_is_refused_by_its_row(missing: Any) -> None:
    with pytest.raises(ValueError, match=r"in row 2 \(counted from 0\)"):
        cluster_codes(["a", "b", missing], 3)


def test_another_number_of_labels_is_refused() -> None:
    with pytest.raises(ValueError, match="a label for each of 3 rows"):
        cluster_codes(["a", "b"], 3)


def test_what_is_no_label_is_refused() -> None:
    labels = np.empty(2, dtype=object)
    labels[:] = [["a"], ["b"]]
    with pytest.raises(ValueError, match="numbers or texts"):
        cluster_codes(labels, 2)


def test_rows_keep_their_labels_wherever_they_go() -> None:
    X = np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, 4.0], [5.0, np.nan]])
    table = Observations.from_array(X, np.array([0, 1, 2, 0]))
    assert table.num_clusters == 2  # nothing is observed of the other
    kept = table.of_rows(table.observed.any(dim=1))
    assert kept.clusters is not None
    assert kept.clusters.tolist() == [0, 1, 0]
    turned = table.reordered(torch.tensor([2, 3, 1, 0]), torch.tensor([1, 0]))
    assert turned.clusters is not None
    assert turned.clusters.tolist() == [0, 1, 2, 1]
    np.testing.assert_array_equal(turned.to_array(), X[[2, 3, 1, 0]][:, [1, 0]])


def test_tables_with_other_clusters_are_other_tables() -> None:
    X = np.arange(8.0).reshape(4, 2)
    names = {
        Observations.from_array(X, clusters).name_of_fit("choices", 0)
        for clusters in (None, np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2]))
    }
    assert len(names) == 3


def test_the_canonical_order_knows_neither_order_nor_names_of_clusters() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (60, 2)).astype(float)  # most rows are equal to others
    labels = rng.integers(0, 15, 60)

    def ordered(rows: Any, names: Any) -> tuple[Any, Any]:
        table = Observations.from_array(X[rows], cluster_codes(names[labels[rows]], 60))
        table = table.reordered(*canonical_order(table))
        assert table.clusters is not None
        return table.to_array(), table.clusters.numpy()

    expected = ordered(np.arange(60), np.arange(15))
    for _ in range(5):
        found = ordered(rng.permutation(60), rng.permutation(15))
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


def test_rows_in_clusters_of_their_own_have_the_order_of_independent_ones() -> None:
    X = np.random.default_rng(1).integers(0, 3, (40, 2)).astype(float)
    alone, own = (Observations.from_array(X, codes) for codes in (None, own_clusters(40)))
    rows, columns = canonical_order(own)
    assert rows.tolist() == canonical_order(alone)[0].tolist()
    clusters = own.reordered(rows, columns).clusters
    assert clusters is not None
    assert clusters.tolist() == list(range(40))


def test_a_cluster_chosen_twice_is_two_clusters() -> None:
    rows, places = rows_of(np.array([1, 0, 1, 2]), np.array([1, 2, 1]))
    assert rows.tolist() == [0, 2, 3, 0, 2]
    assert places.tolist() == [0, 0, 1, 2, 2]


def test_rows_of_a_cluster_are_dealt_to_one_fold() -> None:
    codes = np.random.default_rng(0).integers(0, 12, 100)
    folds = deal(100, codes, 5, np.random.default_rng(1))
    assert sorted(np.concatenate(folds).tolist()) == list(range(100))
    assert sum(len(np.unique(codes[fold])) for fold in folds) == len(np.unique(codes))
    alone = deal(100, None, 5, np.random.default_rng(1))
    own = deal(100, own_clusters(100), 5, np.random.default_rng(1))
    for one, other in zip(alone, own, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_error_of_a_mean_is_that_of_independent_clusters() -> None:
    values = torch.from_numpy(np.random.default_rng(0).normal(size=30))
    of_rows = error_of_mean(values, None)
    assert error_of_mean(values, torch.arange(30)) == pytest.approx(of_rows, rel=1e-12)
    repeated = values.repeat_interleave(5)
    clusters = torch.arange(30).repeat_interleave(5)
    assert error_of_mean(repeated, clusters) == pytest.approx(of_rows, rel=1e-12)


def test_clusters_with_both_columns_are_counted_once() -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((80, 4)) < 0.6, np.nan, 1.0)
    codes = cluster_codes(rng.integers(0, 25, 80), 80)
    found = Observations.from_array(X, codes).num_pairwise_independent().numpy()
    observed = ~np.isnan(X)
    expected = [
        [len(np.unique(codes[observed[:, i] & observed[:, j]])) for j in range(4)] for i in range(4)
    ]
    np.testing.assert_array_equal(found, expected)
    alone = Observations.from_array(X)
    np.testing.assert_array_equal(alone.num_pairwise_independent(), alone.num_pairwise())


def test_labels_follow_the_same_numbers_anew() -> None:
    assert renumbered(torch.tensor([5, 2, 5, 9])).tolist() == [0, 1, 0, 2]

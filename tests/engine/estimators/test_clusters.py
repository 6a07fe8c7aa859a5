"""Fits, choices, resamples and permutations of rows that are dependent within clusters."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import t as student

import vnce_engine
from vnce_engine import (
    GaussianEM,
    GaussianVNCE,
    TruncatedGaussianVNCE,
    bootstrap,
    compare,
    correlation_stability,
    difference,
    group_difference,
)
from vnce_engine.contrastive.gaussian_problem import GaussianProblem
from vnce_engine.data.clusters import cluster_codes
from vnce_engine.data.observations import Observations
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.penalties.penalty import PenaltyKind
from vnce_engine.runtime.progress import Progress
from vnce_engine.selection.cross_validation import _Folds
from vnce_engine.selection.setting import Setting
from vnce_engine.selection.stability import StabilityRule, _halves

FloatArray = NDArray[np.float64]

ESTIMATORS = [
    estimator
    for name in vnce_engine.__all__
    if isinstance(estimator := getattr(vnce_engine, name), type)
    and issubclass(estimator, NetworkEstimator)
]


def clustered(
    num_clusters: int, size: int, seed: int, *, effect: float = 0.8, link: float = 0.0
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return rows of four normal columns of variance 1 and mean 8, and their clusters.

    `effect` is the share of the variance that a cluster's rows have in common; in either part the
    first two columns have the correlation `link`, and all others are independent.
    """
    rng = np.random.default_rng(seed)
    covariance = np.eye(4)
    covariance[0, 1] = covariance[1, 0] = link
    labels = np.repeat(np.arange(num_clusters), size)
    shared = rng.multivariate_normal(np.zeros(4), effect * covariance, num_clusters)
    own = rng.multivariate_normal(np.zeros(4), (1 - effect) * covariance, len(labels))
    return 8.0 + shared[labels] + own, labels


def fit(X: Any, labels: Any, **options: Any) -> GaussianVNCE:
    return GaussianVNCE(penalty=0.3, penalty_kind="ridge", **options).fit(X, clusters=labels)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_says_how_many_clusters_there_were(
    estimator: type[NetworkEstimator],
) -> None:
    X, labels = clustered(12, 5, 0)
    X[0] = np.nan
    model = estimator(max_iter=2).fit(X, clusters=labels)
    assert model.diagnostics_.num_clusters == 12


def problem(labels: Any) -> GaussianProblem:
    X, _ = clustered(30, 4, 1)
    table = Observations.from_array(X, cluster_codes(labels, len(X)))
    generator = torch.Generator().manual_seed(0)
    return GaussianProblem.prepare(table, 2, "sobol", generator)


def test_rows_of_a_cluster_are_held_out_together() -> None:
    labels = np.random.default_rng(2).integers(0, 25, 120)
    setting = Setting(problem(labels), PenaltyKind.RIDGE, has_linear=True)
    of_row = _Folds(setting, Progress(None))._of_row.numpy()
    assert len(np.unique(of_row)) == 10
    for label in np.unique(labels):
        assert len(np.unique(of_row[labels == label])) == 1


def test_half_samples_are_of_clusters() -> None:
    labels = np.random.default_rng(3).integers(0, 25, 120)
    setting = Setting(problem(labels), PenaltyKind.L1, has_linear=True)
    halves = [labels[half.numpy()] for half in _halves(StabilityRule(2), setting)]
    assert len(halves) == 2
    first, second = (set(half.tolist()) for half in halves)
    assert len(first) == len(second) == 12
    assert not first & second
    assert all((labels == label).sum() == (halves[0] == label).sum() for label in first)


def test_a_choice_by_ebic_says_that_it_does_not_know_of_clusters() -> None:
    X, labels = clustered(40, 2, 4, link=0.5)
    model = GaussianEM(penalty="ebic").fit(X, clusters=labels)
    [warning] = [one for one in model.warnings_ if one.code == "rows-taken-for-independent"]
    assert '`penalty="cv"`' in warning.message
    by_folds = GaussianEM(penalty="cv").fit(X, clusters=labels)
    assert warning.code not in {one.code for one in by_folds.warnings_}


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        GaussianEM(penalty="cv"),
        pytest.param(TruncatedGaussianVNCE(column_transform="auto"), marks=pytest.mark.release),
    ],
)
def test_clusters_of_single_rows_change_no_choice(estimator: NetworkEstimator) -> None:
    X, _ = clustered(60, 1, 5)
    own = np.random.default_rng(6).permutation(60)
    alone, of_own = (estimator.fit(X, clusters=labels).precision_ for labels in (None, own))
    np.testing.assert_array_equal(alone, of_own)


@pytest.mark.slow
def test_resamples_are_of_clusters() -> None:
    """The spread over resamples is that of 40 clusters, and not that of 400 rows.

    Of partial correlations about zero it is 1 / √40 to 1 / √400. Each spread is known to a fifth
    of itself from 20 resamples, and the mean of six to a tenth.
    """
    X, labels = clustered(40, 10, 7, effect=1 - 1e-6)
    model = fit(X, labels)
    found = bootstrap(model, X, 20, clusters=labels)
    spread = float(found.debiased.standard_deviation.mean())
    assert 0.5 / 40**0.5 < spread < 1.5 / 40**0.5
    with pytest.raises(ValueError, match="fitted with `clusters`"):
        bootstrap(model, X, 20)
    with pytest.raises(ValueError, match="fitted with them"):
        bootstrap(GaussianVNCE(penalty=0.3).fit(X), X, 20, clusters=labels)
    assert correlation_stability(model, X, 10, clusters=labels).n_ok.sum() >= 9
    with pytest.raises(ValueError, match="fitted with `clusters`"):
        correlation_stability(model, X, 10)


@pytest.mark.slow
def test_differences_of_few_clusters_have_their_degrees_of_freedom() -> None:
    X, labels = clustered(12, 10, 8, effect=0.5)
    first, second = fit(X, labels), fit(X[::-1].copy(), labels[::-1])
    found = difference(first, second)
    width = (found.upper - found.lower) / 2 / found.standard_error
    # Welch's of two equal errors of 11 degrees of freedom each are 22.
    assert width == pytest.approx(student.isf(0.025, 22), rel=1e-2)


@pytest.mark.slow
def test_resamples_of_single_rows_are_those_without_clusters() -> None:
    X, _ = clustered(60, 1, 8)
    own = [f"row {place}" for place in range(60)]
    alone = bootstrap(fit(X, None), X, 3)
    of_own = bootstrap(fit(X, own), X, 3, clusters=own)
    np.testing.assert_array_equal(alone.debiased.mean, of_own.debiased.mean)


def test_groups_split_no_cluster() -> None:
    """Errors are larger by the root of 1 + 3 · .8², 1.7, each known to an eighth of itself."""
    X, labels = clustered(60, 4, 9)
    model, groups = fit(X, labels), labels < 30
    with pytest.raises(ValueError, match="60 of the clusters have rows in both groups"):
        group_difference(model, X, np.arange(240) % 2, 0, clusters=labels)
    found = group_difference(model, X, groups, 1, clusters=labels)
    assert found.n_ok == 1
    alone = group_difference(fit(X, None), X, groups, 0)
    assert 1.2 < np.mean(found.standard_error / alone.standard_error) < 2.2


@pytest.mark.slow
def test_tables_of_clusters_are_permuted_by_clusters() -> None:
    tables = [clustered(30, 4, seed) for seed in (13, 14)]
    one, other = (fit(*table) for table in tables)
    (X, labels), (Y, others) = tables
    found = difference(one, other, (X, Y), 2, clusters=(labels, others))
    assert found.n_ok == 2
    with pytest.raises(ValueError, match="fitted with `clusters`"):
        difference(one, other, (X, Y), 2)


@pytest.mark.slow
def test_permuted_single_rows_are_those_without_clusters() -> None:
    X, _ = clustered(60, 1, 10)
    own, groups = np.arange(60), np.arange(60) < 30
    alone = group_difference(fit(X, None), X, groups, 3)
    of_own = group_difference(fit(X, own), X, groups, 3, clusters=own)
    assert alone.largest == of_own.largest


@pytest.mark.slow
def test_a_comparison_holds_out_whole_clusters() -> None:
    """Its errors are those of clusters, three times as large where their ten rows are alike."""
    X, labels = clustered(40, 10, 11, effect=1 - 1e-6)
    models = {"em": GaussianEM(), "ridge": GaussianVNCE(penalty=0.3, penalty_kind="ridge")}
    alone = compare(models, X, n_folds=2)
    of_clusters = compare(models, X, n_folds=2, clusters=labels)
    for one in of_clusters.models:
        [other] = [model for model in alone.models if model.name == one.name]
        assert 2 < one.standard_error / other.standard_error < 5
        assert one.held_out.clusters is not None
    assert compare(models, X, n_folds=41, clusters=labels).models[0].held_out.reason is not None


def test_r_squared_of_clusters_has_an_interval_of_clusters() -> None:
    X, labels = clustered(40, 10, 12, effect=1 - 1e-6, link=0.6)
    model = fit(X, labels)
    for one, other in zip(model.predictability(X, labels), model.predictability(X), strict=True):
        assert one is not None
        assert other is not None
        assert one.value == other.value
        assert 2.5 < (one.upper - one.lower) / (other.upper - other.lower) < 4


@pytest.mark.release
def test_intervals_hold_a_true_edge_as_often_as_they_say_by_clusters_and_not_by_rows() -> None:
    """100 tables of 150 clusters of 5 rows, which have four fifths of the variance in common.

    The variance of an estimate is 1 + 4 · .8² = 3.6 times that of independent rows, since what two
    rows of a cluster add to it has the correlation .8² = .64: by rows 70 % of intervals hold the
    truth. A share of 100 has a standard error of .022 at .95. Beside the true edge, which all
    tables show, at a rate of .1 at most a tenth of the edges found is false, by clusters; the
    standard error of that mean, of shares up to 5/6, is .025.
    """
    covered = dict.fromkeys(("clusters", "rows"), 0)
    false_share = dict.fromkeys(covered, 0.0)
    for seed in range(100):
        X, labels = clustered(150, 5, seed, link=0.4)
        for way, given in (("clusters", labels), ("rows", None)):
            edges = fit(X, given, random_state=seed).edges_
            [true] = [edge for edge in edges if (edge.source, edge.target) == (0, 1)]
            assert true.lower is not None
            assert true.upper is not None
            covered[way] += true.lower <= 0.4 <= true.upper
            found = sum(edge.selected for edge in edges)
            false_share[way] += (found - true.selected) / max(found, 1) / 100
    assert abs(covered["clusters"] / 100 - 0.95) < 2 * 0.022
    assert covered["rows"] / 100 < 0.8
    assert false_share["clusters"] < 0.1 + 2 * 0.025
    assert false_share["rows"] > 0.3

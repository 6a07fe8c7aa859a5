import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from vnce_engine.comparators import graphical_lasso as lasso_module
from vnce_engine.comparators.gaussian_em import observed_log_likelihoods
from vnce_engine.estimators.gaussian_em import GaussianEM
from vnce_engine.runtime.reports import FitStatus
from vnce_engine.simulate import mask_completely_at_random, ring_precision

COVARIANCE = np.array([[1.0, 0.6, -0.3], [0.6, 2.0, 0.2], [-0.3, 0.2, 1.5]])
MEAN = np.array([1.0, -2.0, 0.5])


@pytest.fixture
def rows():
    return np.random.default_rng(3).multivariate_normal(MEAN, COVARIANCE, size=400)


@pytest.fixture
def holes(rows):
    mask = np.random.default_rng(4).random(rows.shape) < 0.3
    return np.where(mask, np.nan, rows)


def test_the_largest_interaction_is_a_partial_correlation() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 1)) + 0.1 * rng.normal(size=(200, 3))
    model = GaussianEM().fit(X * [1.0, 1e3, 1e-3])
    rho = np.abs(model.partial_correlation_ - np.eye(3)).max()
    assert model.diagnostics_.largest_interaction == pytest.approx(rho, rel=1e-9)


def test_without_missing_cells_it_is_the_sample_covariance(rows):
    model = GaussianEM().fit(rows)

    assert model.mean_ == pytest.approx(rows.mean(axis=0), rel=1e-12)
    assert model.covariance_ == pytest.approx(np.cov(rows.T, bias=True), rel=1e-10)
    assert model.precision_ @ model.covariance_ == pytest.approx(np.eye(3), abs=1e-10)
    assert model.converged_
    assert model.diagnostics_.num_missing == 0


def test_one_column_cut_short_gives_the_factored_regression(rows):
    # Anderson (1957): the complete column's own moments, and the other's regression on it from the
    # complete pairs, carried over.
    pair = rows[:, :2].copy()
    pair[250:, 1] = np.nan
    model = GaussianEM(tol=1e-14).fit(pair)

    first, second = pair[:250].T
    slope = np.cov(first, second, bias=True)[0, 1] / first.var()
    residual = second.var() - slope**2 * first.var()
    mean = second.mean() + slope * (pair[:, 0].mean() - first.mean())
    variance = pair[:, 0].var()
    expected = [[variance, slope * variance], [slope * variance, residual + slope**2 * variance]]
    # A gain of 1e-14 in a function that is quadratic there is an error of about its root.
    assert model.mean_ == pytest.approx([pair[:, 0].mean(), mean], abs=1e-6)
    assert model.covariance_ == pytest.approx(np.array(expected), abs=1e-6)


def test_the_observed_likelihood_is_the_marginals_and_never_falls(holes):
    model = GaussianEM().fit(holes)

    expected = sum(
        multivariate_normal(model.mean_[seen], model.covariance_[np.ix_(seen, seen)]).logpdf(
            row[seen]
        )
        for row in holes
        if (seen := ~np.isnan(row)).any()
    )
    num_seen = (~np.isnan(holes)).any(axis=1).sum()
    value = observed_log_likelihoods(
        holes[(~np.isnan(holes)).any(axis=1)],
        torch.from_numpy(model.mean_),
        torch.from_numpy(np.linalg.inv(model.covariance_)),
    ).mean()
    assert value == pytest.approx(expected / num_seen, rel=1e-10)
    # The path's is in the units of the table too; `tol` is what an iteration still gains.
    assert model.objective_path_[-1] == pytest.approx(value, abs=1e-6)
    steps = np.diff(model.objective_path_)
    assert (steps >= -1e-12).all()


@pytest.mark.parametrize("far", [1e3, 1e6])
def test_a_table_far_from_zero_loses_no_digits_to_its_distance(holes, far):
    reference, shifted = GaussianEM().fit(holes), GaussianEM().fit(holes + far)

    # Rounding of the values themselves, far * eps, is all that is lost; spreads are near 1.
    lost = 100 * far * np.finfo(float).eps
    assert shifted.covariance_ == pytest.approx(reference.covariance_, abs=lost)
    assert shifted.mean_ - far == pytest.approx(reference.mean_, abs=lost)
    assert shifted.precision_ == pytest.approx(reference.precision_, abs=lost)
    assert shifted.objective_path_ == pytest.approx(reference.objective_path_, abs=lost)
    gaps = np.isnan(holes)
    filled = shifted.impute(holes + far)[gaps] - far
    assert filled == pytest.approx(reference.impute(holes)[gaps], abs=lost)


@pytest.mark.parametrize("penalty", [None, "ebic", "cv"])
def test_a_log_likelihood_falls_by_the_log_of_the_unit_for_each_observed_cell(holes, penalty):
    rows = holes[(~np.isnan(holes)).any(axis=1)]
    units = np.array([10.0, 0.5, 4.0])
    lost = float(((~np.isnan(rows)) @ np.log(units)).mean())
    one, other = (
        GaussianEM(penalty=penalty, random_state=0).fit(table) for table in (rows, rows * units)
    )

    assert np.array(one.objective_path_) - lost == pytest.approx(other.objective_path_, rel=1e-9)
    per_criterion = {None: 0.0, "ebic": 2 * len(rows) * lost, "cv": -lost}[penalty]
    criteria, shifted = ([step.criterion for step in model.penalty_path_] for model in (one, other))
    assert np.array(criteria) + per_criterion == pytest.approx(shifted, rel=1e-6)


def test_the_estimates_lie_within_five_standard_errors_of_the_truth(holes):
    model = GaussianEM().fit(holes)

    # At least the rows in which both columns are seen; a covariance's variance is
    # (s_ii s_jj + s_ij²) / n.
    n = len(holes) * 0.7**2 * 0.8
    spread = np.sqrt((np.outer(np.diag(COVARIANCE), np.diag(COVARIANCE)) + COVARIANCE**2) / n)
    assert (np.abs(model.covariance_ - COVARIANCE) < 5 * spread).all()


def test_the_log_partition_normalises_the_density(holes):
    model = GaussianEM().fit(holes)

    log_phi = -0.5 * MEAN @ model.precision_ @ MEAN + model.linear_ @ MEAN - model.log_partition_
    expected = multivariate_normal(model.mean_, model.covariance_).logpdf(MEAN)
    assert log_phi == pytest.approx(expected, rel=1e-9)


def test_imputations_are_conditional_means_and_keep_observed_cells(holes):
    model = GaussianEM().fit(holes)
    filled = model.impute(holes)

    row = int(np.flatnonzero(np.isnan(holes[:, 0]) & ~np.isnan(holes[:, 1:]).any(axis=1))[0])
    C, m = model.covariance_, model.mean_
    expected = m[0] + C[0, 1:] @ np.linalg.solve(C[1:, 1:], holes[row, 1:] - m[1:])
    assert filled[row, 0] == pytest.approx(expected, rel=1e-9)
    observed = ~np.isnan(holes)
    assert (filled[observed] == holes[observed]).all()


def test_imputations_of_transformed_columns_are_means_on_their_own_scale():
    rng = np.random.default_rng(6)
    roots = rng.multivariate_normal([9.0, 8.0], [[1.0, 0.5], [0.5, 1.0]], size=300)
    X = roots**2
    X[:50, 0] = np.nan
    model = GaussianEM(column_transform="sqrt").fit(X)

    variance = 1 / model.precision_[0, 0]
    mean = model.mean_[0] - variance * model.precision_[0, 1] * (roots[:50, 1] - model.mean_[1])
    # The mass below 0 is seven standard deviations away.
    assert model.impute(X)[:50, 0] == pytest.approx(mean**2 + variance, rel=1e-8)


def test_a_column_that_is_nearly_a_function_of_another_does_not_look_finished(
    nearly_functional_table,
):
    model = GaussianEM(max_iter=30).fit(nearly_functional_table)

    assert not model.converged_
    assert model.status_ in (FitStatus.MAX_ITERATIONS, FitStatus.NON_FINITE)
    assert model.column_change_.shape == (4,)
    filled = model.impute(nearly_functional_table)
    spread = np.nanmax(nearly_functional_table, axis=0) - np.nanmin(nearly_functional_table, axis=0)
    assert np.isfinite(filled).all()
    # Other columns' noise moves the mean of a normal, but not by many of its ranges.
    assert (np.abs(filled - np.nanmean(nearly_functional_table, axis=0)) < 3 * spread).all()


@pytest.mark.parametrize("penalty", ["ebic", "cv", 0.1])
def test_a_graphical_lasso_finds_the_chain_and_is_exactly_symmetric(penalty):
    rng = np.random.default_rng(8)
    precision = np.eye(5) + np.diag([0.45] * 4, 1) + np.diag([0.45] * 4, -1)
    X = rng.multivariate_normal(np.zeros(5), np.linalg.inv(precision), size=1_500)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = GaussianEM(penalty=penalty, random_state=0).fit(X)

    assert (model.precision_ == model.precision_.T).all()
    chain = np.diag([True] * 4, 1)
    assert (model.precision_[chain] > 0.1).all()
    assert model.penalty_ > 0
    if penalty == "ebic":
        absent = np.triu(np.ones((5, 5), bool), 2)
        assert (model.precision_[absent] == 0).mean() >= 0.5


@pytest.mark.parametrize("penalty", [0.2, 0.4])
def test_a_lasso_of_an_ordinary_table_settles_where_no_correlation_asks_for_more(penalty):
    rng = np.random.default_rng(2)
    covariance = np.linalg.inv(ring_precision(20, rng))
    model = GaussianEM(penalty=penalty).fit(rng.multivariate_normal(np.zeros(20), covariance, 300))

    assert model.converged_
    scale = np.sqrt(np.diagonal(model.covariance_))
    correlation = model.covariance_ / np.outer(scale, scale)
    K = model.precision_ * np.outer(scale, scale)
    slope = correlation - np.linalg.inv(K)
    edges, others = (np.triu(present, 1) for present in (K != 0, K == 0))
    # The slope of the likelihood is the penalty's, and nowhere above it, but for the root of the
    # dual gap of 1e-4 at which a lasso has settled.
    assert slope[edges] == pytest.approx(-penalty * np.sign(K[edges]), abs=1e-2)
    assert (np.abs(slope[others]) < penalty + 1e-2).all()


@pytest.fixture
def chain():
    precision = np.eye(5) + np.diag([0.45] * 4, 1) + np.diag([0.45] * 4, -1)
    rows = np.random.default_rng(8).multivariate_normal(np.zeros(5), np.linalg.inv(precision), 600)
    return mask_completely_at_random(rows, 0.1, np.random.default_rng(9))


@pytest.mark.parametrize(("penalty", "rule"), [("ebic", "ebic"), ("cv", "held-out")])
def test_a_chosen_lasso_leaves_its_whole_path(penalty, rule, chain):
    model = GaussianEM(penalty=penalty, random_state=0).fit(chain)

    path = model.penalty_path_
    strengths = [step.strength for step in path]
    assert len(path) == 12
    assert strengths == sorted(strengths, reverse=True)
    (chosen,) = [step for step in path if step.chosen]
    criteria = [step.criterion for step in path]
    assert chosen.criterion == (min(criteria) if penalty == "ebic" else max(criteria))
    assert (model.selection_, model.penalty_kind_) == (rule, "l1")
    assert model.penalty_ == chosen.strength
    # K is that of the chosen step.
    again = GaussianEM(penalty=chosen.strength).fit(chain)
    assert model.precision_ == pytest.approx(again.precision_, rel=1e-12)
    assert sum(edge.precision != 0 for edge in model.edges_) == chosen.num_edges
    assert path[0].num_edges == 0
    errors = [step.standard_error for step in path]
    if penalty == "ebic":
        assert errors == [None] * 12
        num_edges = 10 * math.log(600) + 10 * 2 * math.log(5)  # of the complete graph
        least = -2 * 600 * GaussianEM().fit(chain).objective_path_[-1]
        # No K is more likely than EM's.
        assert path[-1].criterion >= least + num_edges / 10 * path[-1].num_edges - 1e-3
    else:
        assert chosen.standard_error == 0
        assert min(error for error in errors if error) > 0


def test_the_strongest_lasso_leaves_no_edge_by_rounding_either():
    for seed in range(6, 12):
        rng = np.random.default_rng(seed)
        X = mask_completely_at_random(rng.normal(size=(60, 5)), 0.15, rng)
        assert GaussianEM(penalty="ebic").fit(X).penalty_path_[0].num_edges == 0


@pytest.mark.slow
def test_a_lasso_chosen_at_an_end_of_its_path_is_a_warning():
    rng = np.random.default_rng(2)
    independent = GaussianEM(penalty="ebic").fit(rng.normal(size=(300, 4)))
    codes = {warning.code: warning.message for warning in independent.warnings_}
    assert independent.penalty_path_[0].chosen
    assert "No interaction is left there" in codes["penalty-at-grid-end"]

    # Ten thousand rows of a full graph: the weakest penalty shrinks least.
    K = np.full((4, 4), -0.3) + 1.3 * np.eye(4)
    full = GaussianEM(penalty="cv", random_state=0).fit(
        rng.multivariate_normal(np.zeros(4), np.linalg.inv(K), size=10_000)
    )
    codes = {warning.code: warning.message for warning in full.warnings_}
    assert full.penalty_path_[-1].chosen
    third = float(f"{full.penalty_ / 3:.2g}")
    assert f"try `penalty={third:g}`" in codes["penalty-at-grid-end"]


def test_a_lasso_that_has_not_settled_is_passed_over_and_a_choice_among_such_says_so(
    chain, monkeypatch
):
    plain = GaussianEM(penalty="ebic").fit(chain)
    settled = {step.strength for step in plain.penalty_path_ if not step.chosen}
    solve = lasso_module.graphical_lasso

    def among(strengths):
        def lasso(covariance, strength):
            found = solve(covariance, strength)
            return replace(found, is_settled=strength in strengths)

        monkeypatch.setattr(lasso_module, "graphical_lasso", lasso)
        return GaussianEM(penalty="ebic").fit(chain)

    other = among(settled)
    assert other.penalty_ in settled
    assert other.converged_
    none = among(set())
    assert none.penalty_ == plain.penalty_
    assert none.status_ is FitStatus.MAX_ITERATIONS
    assert "choice-not-settled" in [warning.code for warning in none.warnings_]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": -1.0}, "`penalty` must be None, 'ebic', 'cv' or a positive number, got -1.0"),
        ({"tol": 0.0}, "`tol` must be a positive number, got 0.0"),
        ({"max_iter": 0}, "`max_iter` must be a whole number from 1 to 1000000, got 0"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(options, message, holes):
    with pytest.raises(ValueError, match=message):
        GaussianEM(**options).fit(holes)


def test_a_cancelled_fit_says_so_and_keeps_its_last_estimate(holes):
    model = GaussianEM().fit(holes, on_step=lambda step: step.iteration >= 2)

    assert model.status_ is FitStatus.CANCELLED
    assert np.isfinite(model.precision_).all()
    assert math.isnan(model.diagnostics_.gradient_norm)

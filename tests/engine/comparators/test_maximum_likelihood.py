import numpy as np
import pytest

from vnce_engine import TruncatedGaussianMLE
from vnce_engine.comparators import natural
from vnce_engine.comparators.exponential import Coordinates, Parameters
from vnce_engine.experiments.graph_recovery import simulate
from vnce_engine.runtime.reports import FitStatus
from vnce_engine.simulate import sample_truncated_gaussian


def scaled_standard_errors(precision, moments_by_quadrature, n):
    """Return standard errors (d, d) of the complete-data estimate of K, h = 0."""
    coordinates = Coordinates(len(precision), has_linear=False)
    x, density, _, _ = moments_by_quadrature(precision, np.zeros(len(precision)))
    statistics = np.array([coordinates.derivative(Parameters(-0.5 * np.outer(r, r), r)) for r in x])
    centred = statistics - density @ statistics
    fisher = (centred * density[:, None]).T @ centred
    errors = np.sqrt(np.diag(np.linalg.inv(fisher)) / n)
    return coordinates.read(errors).precision


def test_the_estimate_matches_the_second_moments_of_the_table(
    complete_table, moments_by_quadrature
):
    # The likelihood equations of an exponential family: E xxᵀ = mean xxᵀ.
    pair = complete_table[:, :2]
    model = TruncatedGaussianMLE(linear="zero", random_state=0, tol=0.02).fit(pair)
    _, _, _, second = moments_by_quadrature(model.precision_, np.zeros(2))

    # Monte Carlo adds at most a fiftieth of the sampling variance of the moments.
    products = np.einsum("ni,nj->nij", pair, pair)
    error = products.std(axis=0) / np.sqrt(len(pair)) * np.sqrt(0.02)
    assert (np.abs(second - pair.T @ pair / len(pair)) < 5 * error).all()
    assert model.converged_
    assert model.log_partition_ is None


@pytest.mark.slow
def test_a_complete_table_gives_the_truth_within_five_standard_errors(
    complete_table, true_precision, moments_by_quadrature
):
    model = TruncatedGaussianMLE(random_state=0).fit(complete_table)

    errors = scaled_standard_errors(
        true_precision, moments_by_quadrature_3(moments_by_quadrature), 4_000
    )
    # Monte Carlo adds half as much to the variance at most, by default.
    assert (np.abs(model.precision_ - true_precision) < 5 * np.sqrt(1.5) * errors).all()


def moments_by_quadrature_3(moments):
    # 40 nodes a column are 64,000 in all, and exact to 1e-9 for densities this smooth.
    return lambda precision, linear: moments(precision, linear, points=30)


@pytest.mark.slow
def test_missing_cells_leave_the_truth_within_five_standard_errors(
    table_with_holes, true_precision, moments_by_quadrature
):
    model = TruncatedGaussianMLE(random_state=0, tol=0.1).fit(table_with_holes)

    # At worst only rows complete in a pair and its neighbours count: 0.8³ of them.
    errors = scaled_standard_errors(
        true_precision, moments_by_quadrature_3(moments_by_quadrature), 4_000 * 0.8**3
    )
    assert (np.abs(model.precision_ - true_precision) < 5 * np.sqrt(1.1) * errors).all()
    assert model.diagnostics_.num_missing == np.isnan(table_with_holes).sum()
    assert "missing-completely-at-random" in [warning.code for warning in model.warnings_]


def test_a_has_linear_term_is_found(moments_by_quadrature):
    precision, linear = np.array([[1.5, 0.5], [0.5, 1.0]]), np.array([2.0, 1.0])
    X = sample_truncated_gaussian(precision, 3_000, np.random.default_rng(2), linear=linear)
    model = TruncatedGaussianMLE(linear="free", random_state=0, tol=0.02).fit(X)

    _, _, first, second = moments_by_quadrature(model.precision_, model.linear_)
    error = np.sqrt(0.02 / len(X))
    assert (np.abs(first - X.mean(axis=0)) < 5 * X.std(axis=0) * error).all()
    products = np.einsum("ni,nj->nij", X, X)
    assert (np.abs(second - X.T @ X / len(X)) < 5 * products.std(axis=0) * error).all()


@pytest.mark.slow
@pytest.mark.parametrize("far", [10.0, 100.0, 1e5])
def test_far_from_zero_it_is_the_gaussian_likelihood_at_any_distance(far):
    # Nothing is cut off there, so that K is the inverse of the sample's covariance, S.
    n, d = 1_000, 5
    covariance = np.full((d, d), 0.3) + 0.7 * np.eye(d)
    X = np.random.default_rng(0).multivariate_normal(np.full(d, far), covariance, size=n)
    model = TruncatedGaussianMLE(linear="free", random_state=0).fit(X)

    K = np.linalg.inv(np.cov(X.T, bias=True))
    # The sampling variance of K_ij; Monte Carlo adds half of it at most, by default.
    error = np.sqrt(0.5 * (np.outer(np.diag(K), np.diag(K)) + K**2) / n)
    assert model.converged_
    assert (np.abs(model.precision_ - K) < 5 * error).all()
    mean = np.linalg.solve(model.precision_, model.linear_)
    assert (np.abs(mean - X.mean(axis=0)) < 5 * np.sqrt(0.5 / n)).all()


@pytest.mark.slow
def test_the_stochastic_gradient_reaches_the_natural_gradients_estimate(complete_table):
    few = complete_table[:1_000]
    natural = TruncatedGaussianMLE(random_state=0, tol=0.02).fit(few)
    stochastic = TruncatedGaussianMLE(
        method="stochastic", step_size=0.3, n_draws=1, burn_in=5, thinning=1, random_state=0
    ).fit(few)

    # A step of .3 / 9 at the end leaves noise of about the root of half the step times the
    # variance of the statistics in a batch of 100, of order one each and two parts of it.
    noise = np.sqrt(0.5 * 0.3 / 9 * 2 / 100)
    difference = np.abs(natural.precision_ - stochastic.precision_)
    scale = np.sqrt((few**2).mean(axis=0))
    assert (difference * np.outer(scale, scale) < 5 * noise).all()
    assert stochastic.status_ is FitStatus.MAX_ITERATIONS


def test_a_step_size_that_is_far_too_large_ends_in_a_non_finite_fit_at_once(complete_table):
    X = complete_table[:120] * 1e4
    model = TruncatedGaussianMLE(
        method="stochastic", step_size=1e9, n_draws=1, burn_in=2, thinning=1, random_state=0
    ).fit(X)

    assert model.status_ is FitStatus.NON_FINITE
    assert model.n_iter_ <= 3
    assert "iteration" in model.message_
    assert "last finite squared gradient" in model.message_
    assert np.isfinite(model.precision_).all()
    assert not model.converged_


@pytest.mark.slow
@pytest.mark.parametrize("step_size", [0.1, 10.0])
def test_no_step_size_leads_to_an_indefinite_or_infinite_k(step_size, table_with_holes):
    X = table_with_holes[:120] * 1e4
    model = TruncatedGaussianMLE(
        method="stochastic",
        step_size=step_size,
        n_draws=1,
        burn_in=2,
        thinning=1,
        max_iter=20,
        random_state=0,
    ).fit(X)

    assert model.diagnostics_.is_positive_definite
    assert np.isfinite(model.precision_).all()
    assert np.isfinite(model.objective_path_).all()
    codes = [warning.code for warning in model.warnings_]
    assert ("step-size-too-large" in codes) == (step_size == 10.0)


@pytest.mark.slow
def test_a_penalty_shrinks_interactions(complete_table):
    few = complete_table[:300]
    free = TruncatedGaussianMLE(random_state=0).fit(few)
    shrunk = TruncatedGaussianMLE(penalty=10.0, penalty_kind="ridge", random_state=0).fit(few)

    pairs = np.triu_indices(3, k=1)
    assert np.abs(shrunk.precision_[pairs]).sum() < np.abs(free.precision_[pairs]).sum()
    assert shrunk.penalty_ == 10.0


def test_more_rows_than_the_first_steps_take_are_all_used(moments_by_quadrature):
    precision = np.array([[1.0, 0.4], [0.4, 1.0]])
    X = sample_truncated_gaussian(precision, 12_000, np.random.default_rng(2), thinning=5)
    model = TruncatedGaussianMLE(random_state=0, tol=0.1).fit(X)
    _, _, _, second = moments_by_quadrature(model.precision_, np.zeros(2))

    products = np.einsum("ni,nj->nij", X, X)
    error = products.std(axis=0) * np.sqrt(0.1 / len(X))
    assert (np.abs(second - X.T @ X / len(X)) < 5 * error).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "newton"}, "`method` must be one of 'natural', 'stochastic', got 'newton'"),
        ({"linear": "one"}, "`linear` must be one of 'auto', 'free', 'zero', got 'one'"),
        ({"penalty": -1.0}, "`penalty` must be None or a number of at least 0, got -1.0"),
        ({"step_size": 0.0}, "`step_size` must be a positive number, got 0.0"),
        ({"burn_in": 0}, "`burn_in` must be a whole number from 1 to 1000000, got 0"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(options, message, complete_table):
    with pytest.raises(ValueError, match=message):
        TruncatedGaussianMLE(**options).fit(complete_table[:50])


@pytest.mark.slow
def test_steps_that_no_definite_k_allows_are_told_of_and_are_no_convergence() -> None:
    # Eight rows and 27 parameters: the likelihood rises beyond every definite K.
    X = np.abs(np.random.default_rng(3).normal(size=(8, 6)))
    stuck = TruncatedGaussianMLE(random_state=0).fit(X)
    assert "definiteness-limit" in {warning.code for warning in stuck.warnings_}
    assert not stuck.converged_
    assert "no maximum was reached" in stuck.message_
    held = TruncatedGaussianMLE(penalty=30.0, penalty_kind="ridge", random_state=0).fit(X)
    assert "definiteness-limit" not in {warning.code for warning in held.warnings_}


@pytest.mark.slow
def test_steps_of_which_hardly_anything_is_taken_are_no_convergence_either() -> None:
    # The truth's smallest scaled eigenvalue is .13, the likelihood's maximum lies at -.05: no step
    # is refused, but most are halved until the iterates agree with each other.
    _, X = simulate("ring", 0.0, 101)
    pinned = TruncatedGaussianMLE(random_state=0).fit(X)
    assert 0 < pinned.diagnostics_.smallest_eigenvalue < 0.05
    assert not pinned.converged_
    assert "definiteness-limit" in {warning.code for warning in pinned.warnings_}
    free = TruncatedGaussianMLE(penalty=1.0, random_state=0).fit(X)
    assert free.diagnostics_.smallest_eigenvalue > 0.1
    assert free.converged_


def test_rows_of_a_long_table_settle_by_fewer_steps_than_the_sum_of_both_stages(
    monkeypatch,
) -> None:
    # 200 first rows stand for 5,000. Both stages need sixteen steps to tell noise from a fall, and
    # an average forty iterates: those of the second stage's sixteen are among them.
    monkeypatch.setattr(natural, "_FIRST_ROWS", 200)
    K = np.array([[1.0, 0.3], [0.3, 1.0]])
    X = sample_truncated_gaussian(K, 2000, np.random.default_rng(4))
    model = TruncatedGaussianMLE(random_state=0, tol=0.9).fit(X)
    assert model.converged_
    assert model.diagnostics_.num_draws == 20
    assert model.n_iter_ < 16 + 16 + 40

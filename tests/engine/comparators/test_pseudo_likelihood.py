import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import truncnorm

from vnce_engine.comparators.estimators import TruncatedGaussianPseudoLikelihood
from vnce_engine.comparators.exponential import Coordinates, Parameters
from vnce_engine.comparators.pseudo_likelihood import negative_pseudo_likelihood


def test_a_column_alone_has_its_likelihood():
    x = np.abs(np.random.default_rng(0).normal(size=200)) + 0.1
    value, _ = negative_pseudo_likelihood(x[None], Parameters(np.array([[2.0]]), np.array([1.0])))

    mean, spread = 0.5, np.sqrt(0.5)
    expected = truncnorm(-mean / spread, np.inf, loc=mean, scale=spread).logpdf(x).mean()
    assert value == pytest.approx(-expected, rel=1e-12)


def test_one_half_normal_column_is_fitted_by_its_mean_square():
    x = np.abs(np.random.default_rng(0).normal(size=200))

    def value(precision):
        theta = Parameters(np.array([[precision]]), np.zeros(1))
        return negative_pseudo_likelihood(x[None], theta)[0]

    best = minimize_scalar(value, bounds=(0.2, 5), method="bounded", options={"xatol": 1e-9}).x
    # Half the digits: the minimum is flat.
    assert best == pytest.approx(1 / np.mean(x**2), rel=1e-6)


def test_the_gradient_is_that_of_the_value():
    rng = np.random.default_rng(1)
    rows = np.abs(rng.normal(size=(3, 40)))
    coordinates = Coordinates(3, free_linear=True)
    theta = Parameters(np.eye(3) + 0.3, rng.normal(size=3))
    step = 1e-5

    vector = coordinates.write(theta)
    numerical = [
        (
            negative_pseudo_likelihood(rows, coordinates.read(vector + step * unit))[0]
            - negative_pseudo_likelihood(rows, coordinates.read(vector - step * unit))[0]
        )
        / (2 * step)
        for unit in np.eye(len(vector))
    ]

    slope = negative_pseudo_likelihood(rows, theta)[1]
    # Third derivatives of order one times step²/6, and rounding of about eps / step.
    assert coordinates.derivative(slope) == pytest.approx(numerical, abs=1e-8)


def test_the_expected_gradient_is_zero_at_the_truth(true_precision, moments_by_quadrature):
    linear = np.array([0.3, -0.2])
    precision = true_precision[:2, :2]
    x, density, _, _ = moments_by_quadrature(precision, linear)
    theta = Parameters(precision, linear)

    # Rows weighted by their density: the gradient is a mean over rows of each one's.
    total = np.zeros((2, 2))
    heavy = density > 1e-14
    for row, share in zip(x[heavy], density[heavy], strict=True):
        total += share * negative_pseudo_likelihood(row[:, None], theta)[1].precision
    assert np.abs(total).max() < 1e-9


def test_an_l1_penalty_leaves_exact_zeros(complete_table):
    # 0.4 for 1000 rows is a slope of 0.1 for 4000: five standard errors, 1/sqrt(n) each at most,
    # of the slope at a pair without interaction.
    model = TruncatedGaussianPseudoLikelihood(penalty=0.4, penalty_kind="l1").fit(complete_table)

    assert model.precision_[0, 2] == 0
    assert model.precision_[0, 1] > 0
    assert not any(edge.selected for edge in model.edges_ if edge.precision == 0)


@pytest.mark.parametrize("distance", [5.0, 100.0, 1000.0])
def test_far_from_zero_it_is_the_likelihood_of_a_gaussian(distance: float) -> None:
    # Of an unbounded Gaussian with every pair free both are solved by the empirical moments. The
    # search ends where its gradient, of columns of variance 1, is below 1e-5.
    rng = np.random.default_rng(0)
    mixing = np.eye(5) + 0.3 * rng.normal(size=(5, 5))
    X = rng.normal(size=(500, 5)) @ mixing.T
    X += distance * X.std(axis=0) - X.min(axis=0)
    model = TruncatedGaussianPseudoLikelihood(linear="free", random_state=0).fit(X)
    precision = np.linalg.inv(np.cov(X.T, bias=True))
    expected = -precision / np.sqrt(np.outer(np.diag(precision), np.diag(precision)))
    np.fill_diagonal(expected, 1)
    assert model.converged_
    assert model.partial_correlation_ == pytest.approx(expected, abs=1e-3)

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import truncnorm

from vnce_engine import TruncatedGaussianPseudoLikelihood
from vnce_engine.comparators.pseudo_likelihood import PseudoLikelihood
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.runtime.progress import Progress

SILENT = Progress(None)


def augmented(precision, linear):
    zero = torch.zeros((), dtype=torch.float64)
    return QuadraticModel(torch.tensor(precision), torch.tensor(linear), zero).augmented()


def no_centre(columns):
    return torch.zeros(len(columns), dtype=torch.float64)


def log_pseudo_likelihood(rows, precision, linear):
    sample = PseudoLikelihood.of(torch.from_numpy(rows), no_centre(rows))
    value, _ = sample.terms(augmented(precision, linear), SILENT)
    return float(value)


def test_a_column_alone_has_its_likelihood():
    x = np.abs(np.random.default_rng(0).normal(size=200)) + 0.1
    value = log_pseudo_likelihood(x[None], np.array([[2.0]]), np.array([1.0]))

    mean, spread = 0.5, np.sqrt(0.5)
    expected = truncnorm(-mean / spread, np.inf, loc=mean, scale=spread).logpdf(x).sum()
    assert value == pytest.approx(expected, rel=1e-12)


def test_one_half_normal_column_is_fitted_by_its_mean_square():
    x = np.abs(np.random.default_rng(0).normal(size=200))

    def value(precision):
        return -log_pseudo_likelihood(x[None], np.array([[precision]]), np.zeros(1))

    best = minimize_scalar(value, bounds=(0.2, 5), method="bounded", options={"xatol": 1e-9}).x
    # Half the digits: the minimum is flat.
    assert best == pytest.approx(1 / np.mean(x**2), rel=1e-6)


@pytest.mark.slow
def test_the_expected_gradient_is_zero_at_the_truth(true_precision, moments_by_quadrature):
    linear = np.array([0.3, -0.2])
    precision = true_precision[:2, :2]
    x, density, _, _ = moments_by_quadrature(precision, linear)
    theta = augmented(precision, linear)

    # Rows weighted by their density: the gradient is a sum over rows of each one's.
    total = torch.zeros(3, 3, dtype=torch.float64)
    heavy = density > 1e-14
    for row, share in zip(x[heavy], density[heavy], strict=True):
        sample = PseudoLikelihood.of(torch.from_numpy(row[:, None]), no_centre(row))
        total += share * sample.terms(theta, SILENT)[1]
    assert total.abs().max() < 1e-9


def test_an_l1_penalty_leaves_exact_zeros(complete_table):
    # 0.4 for 1000 rows is a slope of 0.1 for 4000: five standard errors, 1/sqrt(n) each at most,
    # of the slope at a pair without interaction.
    model = TruncatedGaussianPseudoLikelihood(penalty=0.4, penalty_kind="l1").fit(complete_table)

    assert model.precision_[0, 2] == 0
    assert model.precision_[0, 1] > 0
    assert not any(edge.selected for edge in model.edges_ if edge.precision == 0)


def test_under_an_l1_penalty_slopes_are_the_penalty_s_or_less_at_zero(complete_table):
    model = TruncatedGaussianPseudoLikelihood(penalty=0.4, penalty_kind="l1").fit(complete_table)

    scale = np.sqrt((complete_table**2).mean(axis=0))
    sample = PseudoLikelihood.of(
        torch.from_numpy(complete_table.T / scale[:, None]), no_centre(scale)
    )
    precision = model.precision_ * np.outer(scale, scale)
    _, slope = sample.terms(augmented(precision, np.zeros(3)), SILENT)
    # Of columns at mean square 1, k0 is 1; a pair's slope is in two entries.
    slopes, allowed = 2 * slope.numpy(), 0.4 * 1000
    for i, j in ((0, 1), (0, 2), (1, 2)):
        if precision[i, j] == 0:
            assert abs(slopes[i, j]) <= allowed
        else:
            assert slopes[i, j] == pytest.approx(allowed * np.sign(precision[i, j]), rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("distance", [5.0, 100.0, 1000.0])
@pytest.mark.parametrize("apart", [1.0, 0.003])
def test_far_from_zero_it_is_the_likelihood_of_a_gaussian(distance: float, apart: float) -> None:
    # Of an unbounded Gaussian with every pair free both are solved by the empirical moments, also
    # where correlations are above .9999.
    rng = np.random.default_rng(0)
    mixing = np.eye(5) + 0.3 * rng.normal(size=(5, 5))
    X = rng.normal(size=(500, 1)) + apart * rng.normal(size=(500, 5)) @ mixing.T
    X += distance * X.std(axis=0) - X.min(axis=0)
    model = TruncatedGaussianPseudoLikelihood(linear="free", random_state=0).fit(X)
    # By orthogonal columns, as squares of X would lose half the digits of what is between columns.
    triangle = np.linalg.inv(np.linalg.qr(X - X.mean(axis=0), mode="r"))
    expected = 500 * triangle @ triangle.T
    units = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert model.converged_
    # The last step is at most 1e-4 standard errors long and leaves about its square; of the largest
    # entries, those on the diagonal, one is sqrt(2 / 500). The lowest value being five standard
    # deviations from zero, means are about eight, where a tail of 1e-15 is cut off.
    left = 1e-4**2 * np.sqrt(2 / 500)
    # A cell x_j is known to eps x_j, whatever multiplies it. That moves the residuals Kx of a row,
    # in units of their deviations 1 / sqrt(K_ii), by at most eps sum_j sqrt(K_jj) x_j, and K, in
    # units, by twice that to first order. The data's scaling, the fit's residuals and their means
    # given the others each do so once.
    to_spread = np.sqrt(np.diag(expected)) * X.max(axis=0)
    moved = 2 * np.finfo(float).eps * to_spread.sum()
    error = np.abs(model.precision_ - expected) / units
    assert error.max() < left + 3 * moved


def test_a_fit_of_complete_rows_tells_how_far_it_is_and_stops_where_it_stands(complete_table):
    steps = []
    whole = TruncatedGaussianPseudoLikelihood().fit(complete_table, on_step=steps.append)
    shares = [step.fraction for step in steps]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == 1
    assert len(set(shares)) > 3
    values = [step.objective for step in steps if step.objective is not None]
    assert values == sorted(values)

    def after_two(step):
        return step.iteration == 2

    stopped = TruncatedGaussianPseudoLikelihood().fit(complete_table, on_step=after_two)
    assert stopped.status_ == "cancelled"
    assert stopped.objective_path_ == [values[1]]
    off = np.abs(stopped.precision_ - whole.precision_).max()
    assert 0 < off < np.abs(np.diag(np.diag(whole.precision_)) - whole.precision_).max()

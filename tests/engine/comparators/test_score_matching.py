import numpy as np
import pytest

from vnce_engine.comparators.estimators import TruncatedGaussianScoreMatching
from vnce_engine.comparators.exponential import Coordinates, Parameters
from vnce_engine.comparators.score_matching import ScoreMatching, Weight
from vnce_engine.progress import Progress

SILENT = Progress(None)


@pytest.mark.parametrize("weight", list(Weight))
def test_the_expected_gradient_is_zero_at_the_truth(weight, true_precision, moments_by_quadrature):
    # Columns one by one: the integrand has a kink at the cap, where quadrature nodes must meet.
    theta = Parameters(true_precision[:2, :2], np.array([0.3, -0.2]))
    pieces = [
        moments_by_quadrature_on_box(theta, low, high, weight)
        for low in ((0, 1), (1, 9))
        for high in ((0, 1), (1, 9))
    ]
    mass = sum(piece[0] for piece in pieces)
    precision = sum(piece[1] for piece in pieces) / mass
    linear = sum(piece[2] for piece in pieces) / mass

    assert np.abs(precision).max() < 1e-9
    assert np.abs(linear).max() < 1e-9


def moments_by_quadrature_on_box(theta, first, second, weight):
    """Return the mass of a box, and the integral of the gradient over it."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    axes, volumes = [], []
    for low, high in (first, second):
        axes.append(low + 0.5 * (high - low) * (nodes + 1))
        volumes.append(0.5 * (high - low) * weights)
    x = np.stack(np.meshgrid(*axes, indexing="ij")).reshape(2, -1)
    volume = np.outer(*volumes).ravel()
    density = np.exp(-0.5 * ((theta.precision @ x) * x).sum(0) + theta.linear @ x) * volume
    mass, precision, linear = density.sum(), np.zeros((2, 2)), np.zeros(2)
    # The gradient is a mean over rows, so that that of single rows can be weighted.
    for column, share in zip(x.T, density, strict=True):
        _, slope = ScoreMatching.of(column[:, None], weight, SILENT)(theta)
        precision += share * slope.precision
        linear += share * slope.linear
    return mass, precision, linear


def test_the_gradient_is_that_of_the_value():
    rng = np.random.default_rng(1)
    objective = ScoreMatching.of(np.abs(rng.normal(size=(3, 50))), Weight.CAPPED, SILENT)
    coordinates = Coordinates(3, free_linear=True)
    theta = Parameters(np.eye(3) + 0.2, rng.normal(size=3))
    step = 1e-5

    vector = coordinates.write(theta)
    numerical = [
        (
            objective(coordinates.read(vector + step * unit))[0]
            - objective(coordinates.read(vector - step * unit))[0]
        )
        / (2 * step)
        for unit in np.eye(len(vector))
    ]

    # J is quadratic: central differences are exact up to rounding, about eps / step.
    assert coordinates.derivative(objective(theta)[1]) == pytest.approx(numerical, abs=1e-9)


def test_a_complete_table_is_fitted_by_one_linear_solve(complete_table):
    model = TruncatedGaussianScoreMatching(linear="free").fit(complete_table)
    scale = np.sqrt((complete_table**2).mean(axis=0))
    objective = ScoreMatching.of(complete_table.T / scale[:, None], Weight.CAPPED, SILENT)
    coordinates = Coordinates(3, free_linear=True)
    zero = coordinates.read(np.zeros(coordinates.size))

    def slope(vector):
        return coordinates.derivative(objective(coordinates.read(vector))[1])

    constant = coordinates.derivative(objective(zero)[1])
    hessian = np.array([slope(unit) - constant for unit in np.eye(coordinates.size)])
    expected = coordinates.read(np.linalg.solve(hessian, -constant))

    # The search ends at a gradient of 1e-5; the least curvature turns it into an error of K.
    allowed = 1e-5 * np.sqrt(coordinates.size) / np.linalg.eigvalsh(hessian)[0]
    assert np.abs(model.precision_ * np.outer(scale, scale) - expected.precision).max() < allowed
    assert np.abs(model.linear_ * scale - expected.linear).max() < allowed
    assert model.converged_

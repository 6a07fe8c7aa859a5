import numpy as np
import pytest
import torch

from vnce_engine import TruncatedGaussianScoreMatching
from vnce_engine.comparators.exponential import Parameters
from vnce_engine.comparators.score_matching import ScoreMatching, Weight
from vnce_engine.runtime.progress import Progress

SILENT = Progress(None)
CAPPED = Weight.CAPPED


def no_centre(columns):
    return torch.zeros(len(columns), dtype=torch.float64)


@pytest.mark.slow
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
    nodes, weights = np.polynomial.legendre.leggauss(30)
    axes, volumes = [], []
    for low, high in (first, second):
        axes.append(low + 0.5 * (high - low) * (nodes + 1))
        volumes.append(0.5 * (high - low) * weights)
    x = np.stack(np.meshgrid(*axes, indexing="ij")).reshape(2, -1)
    volume = np.outer(*volumes).ravel()
    density = np.exp(-0.5 * ((theta.precision @ x) * x).sum(0) + theta.linear @ x) * volume
    mass, precision, linear = density.sum(), np.zeros((2, 2)), np.zeros(2)
    augmented = torch.zeros(3, 3, dtype=torch.float64)
    augmented[:2, :2] = torch.from_numpy(theta.precision)
    augmented[:2, 2] = augmented[2, :2] = -torch.from_numpy(theta.linear)
    # The gradient is a mean over rows, so that that of single rows can be weighted.
    for column, share in zip(x.T, density, strict=True):
        row = torch.from_numpy(column[:, None])
        sample = ScoreMatching.of(row, no_centre(column), weight, SILENT)
        _, slope = sample.terms(augmented, SILENT)
        precision += share * slope.numpy()[:2, :2]
        linear += share * slope.numpy()[:2, 2]
    return mass, precision, linear


def test_a_complete_table_is_fitted_by_one_linear_solve(complete_table):
    model = TruncatedGaussianScoreMatching(linear="free").fit(complete_table)
    scale = np.sqrt((complete_table**2).mean(axis=0))
    sample = ScoreMatching.of(
        torch.from_numpy(complete_table.T / scale[:, None]), no_centre(scale), CAPPED, SILENT
    )
    pairs = [(i, j) for i in range(3) for j in range(i, 4)]

    def read(vector):
        theta = torch.zeros(4, 4, dtype=torch.float64)
        for (i, j), entry in zip(pairs, vector, strict=True):
            theta[i, j] = theta[j, i] = entry
        return theta

    def slope(vector):
        _, gradient = sample.terms(read(vector), SILENT)
        return np.array([float((gradient * read(unit)).sum()) for unit in np.eye(len(pairs))])

    constant = slope(np.zeros(len(pairs)))
    hessian = np.array([slope(unit) - constant for unit in np.eye(len(pairs))])
    expected = read(np.linalg.solve(hessian, -constant)).numpy()

    # The last step is solved but for 1e-6 of it, and was shorter than 1e-4 standard errors.
    precision = model.precision_ * np.outer(scale, scale)
    assert precision == pytest.approx(expected[:3, :3], abs=1e-9)
    assert model.linear_ * scale == pytest.approx(-expected[:3, 3], abs=1e-9)
    assert model.converged_

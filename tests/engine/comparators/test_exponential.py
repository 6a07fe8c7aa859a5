import numpy as np
import pytest

from vnce_engine.comparators.exponential import Coordinates, Moments, Parameters, gradient


@pytest.mark.parametrize("has_linear", [True, False])
def test_reading_undoes_writing(has_linear, true_precision):
    linear = np.array([0.5, -1.0, 2.0]) if has_linear else np.zeros(3)
    coordinates = Coordinates(3, has_linear=has_linear)

    back = coordinates.read(coordinates.write(Parameters(true_precision, linear)))

    assert (back.precision == true_precision).all()
    assert (back.linear == linear).all()
    assert coordinates.size == (9 if has_linear else 6)


def test_the_fisher_information_is_the_covariance_of_the_statistics():
    state = np.random.default_rng(0).random((3, 100))
    coordinates = Coordinates(3, has_linear=True)
    statistics = [coordinates.derivative(Parameters(-0.5 * np.outer(x, x), x)) for x in state.T]

    expected = np.cov(np.array(statistics).T, bias=True)
    product = np.array([coordinates.fisher_product(state, unit) for unit in np.eye(9)])
    assert product == pytest.approx(expected, abs=1e-14)
    assert coordinates.fisher_diagonal(state) == pytest.approx(np.diag(expected), abs=1e-14)


def test_the_gradient_vanishes_where_the_moments_agree():
    moments = Moments.of(np.random.default_rng(0).random((3, 20)))
    slope = gradient(moments, moments, has_linear=True)

    assert (slope.precision == 0).all()
    assert (slope.linear == 0).all()


def test_damping_makes_k_definite_and_keeps_its_diagonal():
    indefinite = Parameters(np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros(2))

    damped = indefinite.damped()

    assert not indefinite.is_definite()
    assert damped.is_definite()
    assert (np.diag(damped.precision) == 1).all()

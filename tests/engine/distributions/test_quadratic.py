import torch

from tests.engine.normal_rows import THETA
from vnce_engine.distributions.quadratic import QuadraticModel


def test_parameters_of_the_gaussian_survive_packing() -> None:
    parameters = QuadraticModel.unpack(THETA, 3)
    torch.testing.assert_close(parameters.packed(), THETA, rtol=0, atol=0)
    assert (parameters.precision == parameters.precision.mT).all()

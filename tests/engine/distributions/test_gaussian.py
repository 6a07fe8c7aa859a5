import numpy as np
import torch

from tests.engine.normal_rows import ROWS, THETA, marginal_by_scipy
from vnce_engine.distributions.gaussian import Gaussian, GaussianConditional
from vnce_engine.distributions.uniforms import open_uniforms


def test_the_gaussian_model_has_the_marginals_of_the_normal_distribution() -> None:
    found = Gaussian(3).log_marginal(THETA, ROWS)
    np.testing.assert_allclose(found.numpy(), marginal_by_scipy(ROWS), rtol=1e-12)


def test_draws_from_the_gaussian_posterior_all_weigh_phi_of_the_observed_cells() -> None:
    uniforms = open_uniforms((5, len(ROWS), 3), torch.Generator().manual_seed(1))
    family, model = GaussianConditional(3), Gaussian(3)
    z = family.rsample(THETA, ROWS, uniforms)
    weights = model.log_phi(THETA, ROWS, z) - family.log_prob(THETA, z, ROWS)
    expected = model.log_marginal(THETA, ROWS).expand(5, -1)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-12)

"""Adam on minibatches, where BFGS on all rows knows the answer."""

from typing import Any

import numpy as np
import pytest
import torch

from vnce_engine.black_box.affine_normal import AffineNormal
from vnce_engine.black_box.contrast import Contrast
from vnce_engine.black_box.fits import fit_jointly
from vnce_engine.black_box.gaussian_noise import GaussianNoise
from vnce_engine.black_box.minibatch_fit import fit_by_adam
from vnce_engine.runtime.reports import FitStatus

FAMILY = AffineNormal(observed_width=2, latent_width=1)
ALPHA = [0.1, 0.1, 0.0, 0.0]


@pytest.fixture
def contrast(harmonium: Any, generator: torch.Generator) -> Contrast:
    truth = harmonium.normalised((1.2, -0.8), 0.5)
    X = harmonium.sample(truth, 500, generator)
    noise = GaussianNoise.fit(X)
    return Contrast.draw(X.numpy(), noise, latent_width=1, nu=2, num_draws=5, generator=generator)


@pytest.mark.slow
def test_adam_comes_to_the_maximum_that_bfgs_finds(
    harmonium: Any, contrast: Contrast, generator: torch.Generator
) -> None:
    start = [0.5, -0.5, 1.0, 2.0]
    exact = fit_jointly(harmonium, FAMILY, contrast, start, ALPHA)
    fit = fit_by_adam(
        harmonium,
        FAMILY,
        contrast,
        start,
        ALPHA,
        num_epochs=100,
        step_size=1e-2,
        generator=generator,
    )
    assert fit.status is FitStatus.MAX_ITERATIONS
    assert fit.num_cycles == 100
    # Steps of at most 1e-2 a batch hover about the maximum by some of them; the objective is flat
    # there, by at most a curvature of 1 times the square of .1 over 2.
    sign = np.sign(fit.theta[0] * exact.theta[0])  # z and -z are alike
    theta = [*(sign * fit.theta[:2]), *fit.theta[2:]]
    np.testing.assert_allclose(theta, exact.theta, rtol=0, atol=0.1)
    assert exact.objective_path[-1] - fit.objective_path[-1] < 0.005


def test_an_epoch_without_a_finite_objective_ends_at_the_one_before(
    harmonium: Any, contrast: Contrast, generator: torch.Generator
) -> None:
    start = [0.5, -0.5, 1.0, 2.0]
    fit = fit_by_adam(
        harmonium,
        FAMILY,
        contrast,
        start,
        ALPHA,
        num_epochs=3,
        step_size=1e200,
        generator=generator,
    )
    assert fit.status is FitStatus.NON_FINITE
    assert fit.theta.tolist() == start


@pytest.mark.slow
def test_adam_stops_when_it_is_told_to(
    harmonium: Any, contrast: Contrast, generator: torch.Generator
) -> None:
    fit = fit_by_adam(
        harmonium,
        FAMILY,
        contrast,
        [0.5, -0.5, 1.0, 2.0],
        ALPHA,
        num_epochs=5,
        generator=generator,
        on_step=lambda step: step.iteration == 2,
    )
    assert fit.status is FitStatus.CANCELLED
    assert fit.num_cycles == 2

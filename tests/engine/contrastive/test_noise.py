import itertools
import math

import numpy as np
import pytest
import torch
from scipy import integrate

from vnce_engine.contrastive.noise import ProductTruncatedNormal
from vnce_engine.data.observations import Observations
from vnce_engine.distributions import truncated_normal
from vnce_engine.distributions.uniforms import open_uniforms, sobol_stream


@pytest.fixture
def noise():
    return ProductTruncatedNormal(
        mu=torch.tensor([0.5, -20.0, 3.0], dtype=torch.float64),
        sigma=torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64),
    )


@pytest.fixture
def incomplete():
    rng = np.random.default_rng(5)
    X = rng.gamma(2.0, [1.0, 1e6, 1e-6], size=(400, 3))
    X[rng.random(X.shape) < 0.3] = math.nan
    return X


def test_fit_matches_mean_and_variance_of_the_observed_cells(incomplete):
    noise = ProductTruncatedNormal.fit(Observations.from_array(incomplete))
    mean, variance = truncated_normal.moments(noise.mu, noise.sigma)

    assert mean.numpy() == pytest.approx(np.nanmean(incomplete, axis=0), rel=1e-10)
    assert variance.numpy() == pytest.approx(np.nanvar(incomplete, axis=0), rel=1e-10)
    assert noise.mean().tolist() == mean.tolist()


def test_log_prob_is_the_joint_with_the_missing_coordinates_integrated_out(noise):
    row = torch.tensor([0.7, 0.1, 2.5], dtype=torch.float64)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    # The means are near 1, .1 and 3 with spreads of at most 1: nothing is left beyond 12.
    grid = torch.from_numpy(6 * (nodes + 1))
    weight = torch.from_numpy(6 * weights)
    everything = torch.ones(1, 3, dtype=torch.bool)

    for missing in itertools.chain([(0,), (1,), (2,)], itertools.combinations(range(3), 2)):
        observed = everything.clone()
        observed[0, list(missing)] = False
        points = torch.cartesian_prod(*[grid] * len(missing)).reshape(-1, len(missing))
        volume = torch.cartesian_prod(*[weight] * len(missing)).reshape(-1, len(missing)).prod(1)
        completed = row.repeat(len(points), 1)
        completed[:, list(missing)] = points

        integral = (noise.log_prob(completed, everything).exp() * volume).sum()

        marginal = noise.log_prob(row.unsqueeze(0), observed).exp()
        assert marginal.item() == pytest.approx(integral.item(), rel=1e-9)


def test_each_marginal_density_integrates_to_one(noise):
    for column in range(3):
        observed = torch.zeros(1, 3, dtype=torch.bool)
        observed[0, column] = True

        def density(x: np.ndarray, observed: torch.Tensor = observed) -> np.ndarray:
            rows = torch.from_numpy(x).unsqueeze(1).expand(-1, 3)
            return noise.log_prob(rows, observed).exp().numpy()

        assert integrate.fixed_quad(density, 0, 12, n=300)[0] == pytest.approx(1, rel=1e-9)


def test_values_of_missing_cells_do_not_matter(noise):
    observed = torch.tensor([[True, False, True]])
    rows = torch.tensor([[0.7, 0.0, 2.5], [0.7, -9.0, 2.5]], dtype=torch.float64)

    first, second = noise.log_prob(rows, observed.expand(2, 3)).tolist()

    assert first == second
    assert noise.log_prob(rows[:1], torch.zeros(1, 3, dtype=torch.bool)).item() == 0


@pytest.mark.parametrize("kind", ["sobol", "random"])
def test_samples_have_the_means_of_the_distribution(noise, kind):
    n = 20_000
    uniforms = (
        sobol_stream(3, seed=1)(n)
        if kind == "sobol"
        else open_uniforms((n, 3), torch.Generator().manual_seed(1))
    )
    mean, variance = truncated_normal.moments(noise.mu, noise.sigma)

    error = noise.sample(uniforms).mean(dim=0) - mean

    # Sobol points err less than independent ones; the bound is that of independent ones.
    assert (error.abs() < 5 * (variance / n).sqrt()).all()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, 1.0, 1.0], "column 1 .* two different observed values"),
        ([math.nan, math.nan, math.nan], "column 1 .* two different observed values"),
        ([2.0, math.nan, math.nan], "column 1 .* two different observed values"),
        ([1.0, -0.5, 3.0], "column 1 .* has a negative value"),
    ],
)
def test_a_column_without_a_truncated_normal_is_refused_by_number(column, message):
    X = np.column_stack([[1.0, 2.0, 3.0], column])

    with pytest.raises(ValueError, match=message):
        ProductTruncatedNormal.fit(Observations.from_array(X))

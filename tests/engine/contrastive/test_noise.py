import itertools
import math

import numpy as np
import pytest
import torch
from scipy import integrate

from vnce_engine.contrastive.correlations import fitted_correlations
from vnce_engine.contrastive.noise import CopulaNoise, ProductTruncatedNormal
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


@pytest.fixture
def joined(noise):
    correlation = torch.tensor(
        [[1.0, 0.6, -0.5], [0.6, 1.0, 0.1], [-0.5, 0.1, 1.0]], dtype=torch.float64
    )
    return CopulaNoise(noise, correlation)


def test_marginals_of_the_copula_are_its_density_with_cells_integrated_out(joined):
    row = torch.tensor([0.7, 0.1, 2.5], dtype=torch.float64)
    # By uniforms, over which the marginal densities are constant; their ends are an even share.
    nodes = (torch.arange(4000, dtype=torch.float64) + 0.5) / 4000
    for missing in range(3):
        observed = torch.ones(1, 3, dtype=torch.bool)
        observed[0, missing] = False
        completed = row.repeat(len(nodes), 1)
        completed[:, missing] = joined.marginals.sample(nodes.unsqueeze(1).expand(-1, 3))[
            :, missing
        ]
        own = ~observed.expand(len(nodes), 3)

        everything = torch.ones_like(own)
        log_density = joined.log_prob(completed, everything) - joined.marginals.log_prob(
            completed, own
        )

        marginal = joined.log_prob(row.unsqueeze(0), observed).exp()
        assert marginal.item() == pytest.approx(log_density.exp().mean().item(), rel=1e-3)


def test_without_correlations_the_copula_is_the_product(noise):
    product = CopulaNoise(noise, torch.eye(3, dtype=torch.float64))
    uniforms = open_uniforms((2, 50, 3), torch.Generator().manual_seed(2))
    observed = uniforms[0] < 0.7

    values, log_density = product.draw(uniforms, observed)

    expected = noise.sample(uniforms.flatten(0, 1)).view_as(values)
    assert values[:, observed].numpy() == pytest.approx(expected[:, observed].numpy(), rel=1e-9)
    own = torch.stack([noise.log_prob(part, observed) for part in expected])
    assert log_density.numpy() == pytest.approx(own.numpy(), abs=1e-9)


def test_draws_have_the_density_that_they_say_and_the_correlations(joined):
    n = 40_000
    uniforms = open_uniforms((n, 1, 3), torch.Generator().manual_seed(3))
    everything = torch.ones(1, 3, dtype=torch.bool)

    values, log_density = joined.draw(uniforms, everything)

    rows = values[:, 0]
    scores = truncated_normal.normal_scores(rows, joined.marginals.mu, joined.marginals.sigma)
    # Beyond, data count as if they were there.
    is_inside = (scores.abs() < 4).all(dim=1)
    expected = joined.log_prob(rows, everything.expand(n, 3))
    assert is_inside.double().mean() > 0.999
    assert log_density[is_inside, 0].numpy() == pytest.approx(expected[is_inside].numpy(), abs=1e-5)
    error = torch.corrcoef(scores.mT) - joined.correlation
    assert error.abs().max() < 5 / math.sqrt(n)
    _, variance = truncated_normal.moments(joined.marginals.mu, joined.marginals.sigma)
    assert ((rows.mean(dim=0) - joined.marginals.mean()).abs() < 5 * (variance / n).sqrt()).all()


def test_uniforms_of_missing_cells_have_no_part_in_a_row(joined):
    uniforms = open_uniforms((4, 1, 3), torch.Generator().manual_seed(4))
    others = uniforms.clone()
    others[..., 1] = 0.9
    observed = torch.tensor([[True, False, True]])

    (values, log_density), (same, as_likely) = (
        joined.draw(of, observed) for of in (uniforms, others)
    )

    # They are to draw the missing cells, independently of what is observed.
    assert torch.equal(values[..., [0, 2]], same[..., [0, 2]])
    assert torch.equal(log_density, as_likely)


def test_zeros_and_values_far_in_the_tail_have_a_finite_density(joined):
    rows = torch.tensor([[0.0, 0.0, 0.0], [1e3, 1e3, 1e3]], dtype=torch.float64)

    assert joined.log_prob(rows, torch.ones_like(rows, dtype=torch.bool)).isfinite().all()


def test_correlations_are_found_in_spite_of_missing_cells():
    rng = np.random.default_rng(6)
    truth = 0.8 ** np.abs(np.subtract.outer(np.arange(8), np.arange(8)))
    n = 4_000
    values = torch.from_numpy(rng.multivariate_normal(np.zeros(8), truth, size=n))
    observed = torch.from_numpy(rng.random((n, 8)) > 0.3)

    found = fitted_correlations(values, observed).numpy()

    # Half of the pairs are left; the shrinkage by 8 rows and EM's last steps come to less.
    assert np.abs(found - truth).max() < 5 / math.sqrt(0.49 * n)


def test_correlations_of_fewer_rows_than_columns_are_positive_definite():
    rng = np.random.default_rng(7)
    values = torch.from_numpy(rng.normal(size=(6, 20)))

    found = fitted_correlations(values, torch.from_numpy(rng.random((6, 20)) > 0.2))

    assert torch.linalg.eigvalsh(found)[0] > 0.1
    assert found.diagonal().numpy() == pytest.approx(1)

import itertools
import math

import numpy as np
import pytest
import torch

from vnce_engine.log_normal import LogNormal
from vnce_engine.noise import random_uniforms
from vnce_engine.observations import Observations

PATTERNS = [
    torch.tensor(p) for p in itertools.product([True, False], repeat=3) if any(p) and not all(p)
]


@pytest.fixture
def family():
    vector = torch.tensor([0.2, -0.5, 0.1, 0.1, -0.2, 0.3, -0.6, 0.4, 0.5], dtype=torch.float64)
    return LogNormal.from_vector(vector, 3)


@pytest.fixture
def row():
    return torch.tensor([0.8, 1.7, 0.4], dtype=torch.float64)


def grid_over_missing(row, observed):
    """Return rows with the missing cells on a grid, and the grid's volume elements."""
    nodes, weights = np.polynomial.legendre.leggauss(120)
    # Eight or more spreads of every log coordinate on either side.
    log_values, weights = torch.from_numpy(12 * nodes), torch.from_numpy(12 * weights)
    num_missing = int((~observed).sum())
    points = torch.cartesian_prod(*[log_values] * num_missing).reshape(-1, num_missing).exp()
    volume = torch.cartesian_prod(*[weights] * num_missing).reshape(-1, num_missing).prod(dim=1)
    rows = row.repeat(len(points), 1)
    rows[:, ~observed] = points
    return rows, volume * points.prod(dim=1)


def joint_log_prob(family, rows):
    nothing = torch.zeros(1, 3, dtype=torch.bool)
    return family.given(torch.ones(1, 3, dtype=torch.float64), nothing).log_prob(rows.unsqueeze(1))[
        :, 0
    ]


def test_the_joint_density_is_the_normal_density_of_the_logarithms(family, row):
    covariance = torch.linalg.inv(family.factor @ family.factor.mT)
    normal = torch.distributions.MultivariateNormal(family.log_mean, covariance)

    expected = normal.log_prob(row.log()) - row.log().sum()

    assert joint_log_prob(family, row.unsqueeze(0)).item() == pytest.approx(
        expected.item(), rel=1e-12
    )


@pytest.mark.parametrize("observed", PATTERNS, ids=str)
def test_conditional_density_is_the_joint_over_its_marginal(family, row, observed):
    rows, volume = grid_over_missing(row, observed)
    joint = joint_log_prob(family, rows).exp()
    marginal = (joint * volume).sum()
    conditional = family.given(row.unsqueeze(0), observed.unsqueeze(0))

    found = conditional.log_prob(rows.unsqueeze(1))[:, 0].exp()

    assert found.numpy() == pytest.approx((joint / marginal).numpy(), rel=1e-9, abs=1e-12)
    assert (found * volume).sum().item() == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("observed", PATTERNS, ids=str)
def test_draws_have_the_conditional_moments_of_the_logarithms(family, row, observed):
    n = 20_000
    covariance = torch.linalg.inv(family.factor @ family.factor.mT)
    missing = ~observed
    gain = torch.linalg.solve(
        covariance[observed][:, observed], covariance[observed][:, missing]
    ).mT
    mean = family.log_mean[missing] + gain @ (row.log() - family.log_mean)[observed]
    variance = covariance[missing][:, missing] - gain @ covariance[observed][:, missing]
    uniforms = random_uniforms(n, 3, torch.Generator().manual_seed(0)).unsqueeze(1)

    draws = family.given(row.unsqueeze(0), observed.unsqueeze(0)).rsample(uniforms)[:, 0]

    logs = draws[:, missing].log()
    diagonal = variance.diagonal()
    assert ((logs.mean(dim=0) - mean).abs() < 5 * (diagonal / n).sqrt()).all()
    # The sample covariance of normals has variance (v_ii v_jj + v_ij²) / n.
    error = logs.mT.cov().reshape(variance.shape) - variance
    standard_error = ((torch.outer(diagonal, diagonal) + variance.square()) / n).sqrt()
    assert (error.abs() < 5 * standard_error).all()
    assert (draws[:, observed] == row[observed]).all()


@pytest.fixture
def table():
    rng = np.random.default_rng(3)
    X = np.exp(rng.normal(size=(12, 3)))
    X[rng.random(X.shape) < 0.4] = math.nan
    X[0] = math.nan
    X[1] = [1.0, 2.0, 3.0]
    return Observations.from_array(X)


def test_rows_of_mixed_patterns_give_what_each_gives_alone(family, table):
    uniforms = random_uniforms(4 * 12, 3, torch.Generator().manual_seed(1)).reshape(4, 12, 3)
    together = family.given(table.values, table.observed)
    draws = together.rsample(uniforms)
    log_prob = together.log_prob(draws)

    for i in range(12):
        alone = family.given(table.values[i : i + 1], table.observed[i : i + 1])
        one = alone.rsample(uniforms[:, i : i + 1])
        assert one.numpy() == pytest.approx(draws[:, i : i + 1].numpy(), rel=1e-13)
        assert alone.log_prob(one).numpy() == pytest.approx(
            log_prob[:, i : i + 1].numpy(), abs=1e-12
        )


def test_several_tables_may_share_one_mask(family, table):
    generator = torch.Generator().manual_seed(2)
    tables = random_uniforms(2 * 12, 3, generator).reshape(2, 12, 3)
    uniforms = random_uniforms(4 * 2 * 12, 3, generator).reshape(4, 2, 12, 3)
    together = family.given(tables, table.observed)
    draws = together.rsample(uniforms)

    for i in range(2):
        alone = family.given(tables[i], table.observed)
        one = alone.rsample(uniforms[:, i])
        assert one.numpy() == pytest.approx(draws[:, i].numpy(), rel=1e-13)
        expected = together.log_prob(draws)[:, i].numpy()
        assert alone.log_prob(one).numpy() == pytest.approx(expected, abs=1e-12)


def test_a_complete_row_has_nothing_to_draw_and_density_one(family):
    row = torch.tensor([[0.5, 0.0, 2.0]], dtype=torch.float64)
    conditional = family.given(row, torch.ones(1, 3, dtype=torch.bool))
    draws = conditional.rsample(random_uniforms(2, 3, torch.Generator()).unsqueeze(1))

    assert (draws == row).all()
    assert (conditional.log_prob(draws) == 0).all()


def test_draws_and_their_density_move_with_the_parameters(family, table):
    uniforms = random_uniforms(2 * 12, 3, torch.Generator().manual_seed(1)).reshape(2, 12, 3)
    vector = family.to_vector().requires_grad_()

    def draw(vector):
        return (
            LogNormal.from_vector(vector, 3).given(table.values, table.observed).rsample(uniforms)
        )

    def density_of_own_draws(vector):
        q = LogNormal.from_vector(vector, 3).given(table.values, table.observed)
        return q.log_prob(q.rsample(uniforms))

    assert torch.autograd.gradcheck(draw, vector)
    assert torch.autograd.gradcheck(density_of_own_draws, vector)
    (gradient,) = torch.autograd.grad(draw(vector).log().square().sum(), vector)
    assert (gradient != 0).all()


def test_the_vector_of_parameters_is_another_name_for_the_family(family):
    again = LogNormal.from_vector(family.to_vector(), 3)

    assert again.factor.numpy() == pytest.approx(family.factor.numpy(), rel=1e-15)
    assert torch.equal(again.log_mean, family.log_mean)
    assert torch.equal(family.factor.tril(), family.factor)
    assert (family.factor.diagonal() > 0).all()


def test_independent_fit_matches_mean_and_variance_of_the_logarithms(table):
    family = LogNormal.fit_independent(table)
    logs = np.log(table.to_array())

    assert family.log_mean.numpy() == pytest.approx(np.nanmean(logs, axis=0), rel=1e-12)
    assert family.factor.numpy() == pytest.approx(np.diag(1 / np.nanstd(logs, axis=0)), rel=1e-12)


def test_observed_zeros_are_refused_with_column_and_count():
    X = [[1.0, 0.0], [2.0, 3.0], [math.nan, 0.0]]

    with pytest.raises(ValueError, match=r"column 1 .* has 2 that are not"):
        LogNormal.fit_independent(Observations.from_array(X))


def test_a_column_of_one_value_is_refused_by_number():
    X = [[1.0, 5.0], [2.0, 5.0], [3.0, math.nan]]

    with pytest.raises(ValueError, match=r"column 1 .* no two different values"):
        LogNormal.fit_independent(Observations.from_array(X))

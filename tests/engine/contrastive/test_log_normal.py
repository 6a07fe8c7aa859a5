import itertools
import math

import numpy as np
import pytest
import torch

from vnce_engine.contrastive.log_normal import LogNormal
from vnce_engine.data.observations import Observations
from vnce_engine.data.patterns import MissingnessPatterns

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


def normal_of_logarithms(family, columns):
    """Return the marginal normal distribution of the logarithms of some columns."""
    covariance = torch.linalg.inv(family.factor @ family.factor.mT)
    return torch.distributions.MultivariateNormal(
        family.log_mean[columns], covariance[columns][:, columns]
    )


def standard_normals(seed, *shape):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def given(family, rows, observed):
    """Condition on tables (t, n, d) with one mask (n, d)."""
    return family.given(rows.where(observed, 1.0).log().mT, MissingnessPatterns.of(observed))


@pytest.mark.parametrize("observed", PATTERNS, ids=str)
def test_conditional_density_is_the_joint_over_its_marginal(family, row, observed):
    k = 50
    draws = given(family, row.expand(1, 1, 3), observed.unsqueeze(0)).draw(
        standard_normals(0, int((~observed).sum()), 1, k)
    )
    logarithms = row.log().repeat(k, 1)
    logarithms[:, ~observed] = draws.logarithms[:, 0].mT
    joint = normal_of_logarithms(family, torch.arange(3)).log_prob(logarithms)
    marginal = normal_of_logarithms(family, observed.nonzero()[:, 0]).log_prob(row[observed].log())

    expected = joint - marginal - logarithms[:, ~observed].sum(dim=1)

    assert draws.log_prob[0, :, 0].numpy() == pytest.approx(expected.numpy(), rel=1e-10)


def test_a_row_without_observed_cells_has_the_joint_density(family):
    nothing = torch.zeros(1, 3, dtype=torch.bool)
    draws = given(family, torch.ones(1, 1, 3, dtype=torch.float64), nothing).draw(
        standard_normals(0, 3, 1, 50)
    )
    logarithms = draws.logarithms[:, 0].mT

    expected = normal_of_logarithms(family, torch.arange(3)).log_prob(logarithms)

    assert draws.log_prob[0, :, 0].numpy() == pytest.approx(
        (expected - logarithms.sum(dim=1)).numpy(), rel=1e-10
    )


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
    normals = standard_normals(0, int(missing.sum()), 1, n)

    logs = (
        given(family, row.expand(1, 1, 3), observed.unsqueeze(0)).draw(normals).logarithms[:, 0].mT
    )

    diagonal = variance.diagonal()
    assert ((logs.mean(dim=0) - mean).abs() < 5 * (diagonal / n).sqrt()).all()
    # The sample covariance of normals has variance (v_ii v_jj + v_ij²) / n.
    error = logs.mT.cov().reshape(variance.shape) - variance
    standard_error = ((torch.outer(diagonal, diagonal) + variance.square()) / n).sqrt()
    assert (error.abs() < 5 * standard_error).all()


@pytest.fixture
def table():
    rng = np.random.default_rng(3)
    X = np.exp(rng.normal(size=(12, 3)))
    X[rng.random(X.shape) < 0.4] = math.nan
    X[0] = math.nan
    X[1] = [1.0, 2.0, 3.0]
    return Observations.from_array(X)


def test_rows_of_mixed_patterns_give_what_each_gives_alone(family, table):
    missing = MissingnessPatterns.of(table.observed)
    normals = standard_normals(1, missing.num_cells, 1, 4)
    together = given(family, table.values.unsqueeze(0), table.observed).draw(normals)

    for i in range(12):
        own = missing.row == i
        alone = given(family, table.values[None, i : i + 1], table.observed[i : i + 1]).draw(
            normals[own]
        )
        assert alone.logarithms.numpy() == pytest.approx(
            together.logarithms[own].numpy(), rel=1e-12
        )
        assert alone.log_prob.numpy() == pytest.approx(
            together.log_prob[..., i : i + 1].numpy(), abs=1e-12
        )


def test_several_tables_may_share_one_mask(family, table):
    tables = standard_normals(2, 2, 12, 3).exp()
    normals = standard_normals(3, MissingnessPatterns.of(table.observed).num_cells, 2, 4)
    together = given(family, tables, table.observed).draw(normals)

    for i in range(2):
        alone = given(family, tables[i : i + 1], table.observed).draw(normals[:, i : i + 1])
        assert alone.logarithms.numpy() == pytest.approx(
            together.logarithms[:, i : i + 1].numpy(), rel=1e-12
        )
        assert alone.log_prob.numpy() == pytest.approx(
            together.log_prob[i : i + 1].numpy(), abs=1e-12
        )


def test_a_complete_table_has_nothing_to_draw_and_density_one(family):
    rows = torch.tensor([[[0.5, 0.0, 2.0]]], dtype=torch.float64)

    draws = given(family, rows, torch.ones(1, 3, dtype=torch.bool)).draw(
        standard_normals(0, 0, 1, 2)
    )

    assert draws.logarithms.shape == (0, 1, 2)
    assert torch.equal(draws.log_prob, torch.zeros(1, 2, 1, dtype=torch.float64))


def test_draws_and_their_density_move_with_the_parameters(family, table):
    normals = standard_normals(1, MissingnessPatterns.of(table.observed).num_cells, 1, 2)
    vector = family.to_vector().requires_grad_()

    def draw(vector):
        q = given(LogNormal.from_vector(vector, 3), table.values.unsqueeze(0), table.observed)
        return tuple(q.draw(normals))

    assert torch.autograd.gradcheck(draw, vector)
    (gradient,) = torch.autograd.grad(draw(vector)[0].square().sum(), vector)
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

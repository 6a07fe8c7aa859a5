"""The theorems on the mixture's population: sums over z exact, integrals over x by quadrature."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from vnce_engine.experiments.mixture import em, objectives
from vnce_engine.experiments.mixture.data import MixtureData
from vnce_engine.experiments.mixture.model import log_bernoulli, log_joint, log_noise, log_posterior

TRUTH = 4.0
NUS = (0.1, 1.0, 10.0)
# Ten standard deviations of the wider component; smooth densities of width 1 and more are
# integrated by so many Gauss-Legendre points to rounding.
NODES, WEIGHTS = (torch.as_tensor(a) * 10 * TRUTH for a in np.polynomial.legendre.leggauss(400))

Objective = Callable[[MixtureData], Tensor]


def repeated(theta: float) -> Tensor:
    return torch.full_like(NODES, theta)


def data_density() -> Tensor:
    return log_joint(repeated(TRUTH), NODES[:, None]).exp().sum(dim=(0, 2))


def noise_density() -> Tensor:
    return log_noise(repeated(TRUTH), NODES[:, None])[:, 0].exp()


def expectation(objective: Objective) -> float:
    """Return the expectation of an objective over data and noise.

    It is a sum of a function of the one data row and of the one noise row of each of b mixtures:
    each part's expectation is taken with the other row held at 0.
    """
    zeros = torch.zeros_like(NODES)[:, None]
    scale = repeated(TRUTH)
    of_x = objective(MixtureData(NODES[:, None], zeros, scale))
    of_y = objective(MixtureData(zeros, NODES[:, None], scale))
    at_zero = objective(MixtureData(zeros, zeros, scale))[0]
    in_x = (WEIGHTS * data_density() * of_x).sum()
    in_y = (WEIGHTS * noise_density() * of_y).sum()
    return float(in_x + in_y - at_zero)


def nce(theta: float, nu: float) -> float:
    return expectation(lambda data: objectives.nce(log_joint, repeated(theta), data, nu))


def log_q(x: Tensor) -> Tensor:
    """Return a q(z | x) that is nobody's posterior, skewed in x."""
    return log_bernoulli(x.new_tensor([[0.5, 0.3, -0.2]]), x)


def test_densities_of_data_and_noise_integrate_to_one() -> None:
    for density in (data_density(), noise_density()):
        assert float((WEIGHTS * density).sum()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("nu", NUS)
def test_the_nce_objective_is_largest_at_the_truth(nu: float) -> None:
    best = nce(TRUTH, nu)
    for theta in (0.3, 1.0, 2.0, 3.9, 4.1, 8.0, 30.0):
        assert nce(theta, nu) < best
    h = 1e-4  # the difference's own error is of order h², its rounding 1e-16 / h
    assert abs(nce(TRUTH + h, nu) - nce(TRUTH - h, nu)) / (2 * h) < 1e-8


@pytest.mark.parametrize("nu", NUS)
@pytest.mark.parametrize("theta", [1.5, 4.0, 9.0])
def test_lemma_1_both_forms_of_the_expected_gap(theta: float, nu: float) -> None:
    gap = nce(theta, nu) - expectation(
        lambda data: objectives.vnce(log_joint, repeated(theta), log_q(data.x), data, nu)
    )
    x = NODES[:, None]
    log_density = log_joint(repeated(theta), x)
    # In logarithms: far out the posterior of one component is below the smallest float.
    log_p, log_q_x = log_posterior(log_density), log_q(x)
    ratio = log_density.logsumexp(dim=0) - log_noise(repeated(TRUTH), x) - math.log(nu)
    log_kappa, log_rest = logsigmoid(ratio), logsigmoid(-ratio)
    f_of_ratio = torch.logaddexp(log_kappa, log_rest + log_q_x - log_p)
    log_mixed = torch.logaddexp(log_kappa + log_p, log_rest + log_q_x)
    f_divergence = (log_q_x.exp() * f_of_ratio).sum(dim=0)[:, 0]
    to_posterior = (log_q_x.exp() * (log_q_x - log_p)).sum(dim=0)[:, 0]
    to_mixed = (log_q_x.exp() * (log_q_x - log_mixed)).sum(dim=0)[:, 0]
    kullback_leiblers = to_posterior - to_mixed
    for divergence in (f_divergence, kullback_leiblers):
        expected = float((WEIGHTS * data_density() * divergence).sum())
        assert gap == pytest.approx(expected, rel=1e-9)
        assert gap > 0


@pytest.mark.parametrize("nu", NUS)
def test_theorem_2_the_best_q_and_the_truth_reach_the_largest_nce_objective(nu: float) -> None:
    def best_over_q(theta: float) -> float:
        return expectation(
            lambda data: objectives.vnce(
                log_joint, repeated(theta), em.e_step(repeated(theta), data), data, nu
            )
        )

    assert best_over_q(TRUTH) == pytest.approx(nce(TRUTH, nu), abs=1e-12)
    for theta in (1.0, 3.9, 4.1, 9.0):
        assert best_over_q(theta) < best_over_q(TRUTH)

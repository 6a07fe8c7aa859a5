"""The paper's theorems on two models with a continuous latent, every integral by quadrature.

One is unnormalised and its posterior is normal; the other is normalised and its posterior has two
modes. For J_NCE the latent is integrated out; for J_VNCE the integral is over q.
"""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from vnce_engine.black_box.affine_normal import AffineNormal
from vnce_engine.black_box.contrast import Contrast, Rows, draw_latents, vnce_terms
from vnce_engine.optim.bfgs import minimise

NUS = (0.1, 1.0, 10.0)
# The trapezoid rule on smooth functions that vanish at both ends is right to rounding once its
# step is a fraction of their width: .3 and more here, against .02 and .05.
Z = torch.linspace(-20, 20, 2001, dtype=torch.float64)
X = torch.linspace(-6, 6, 241, dtype=torch.float64)
DZ, DX = float(Z[1] - Z[0]), float(X[1] - X[0])
FAMILY = AffineNormal(observed_width=1, latent_width=1)
# Mean .2 x + .5 and standard deviation 1.5: the posterior of neither model.
ALPHA = torch.tensor([0.2, 0.5, math.log(1.5)], dtype=torch.float64)


class Quartic:
    """log phi = -½ z² + w z x - ½ x² - tau/4 x⁴ - c; the posterior is N(w x, 1)."""

    theta = torch.tensor([1.2, 0.5, 1.0], dtype=torch.float64)
    truth = torch.tensor([0.9, 0.8, 0.0], dtype=torch.float64)

    def log_phi(self, theta: Tensor, u: Tensor, z: Tensor) -> Tensor:
        w, tau, c = theta
        x, z = u[..., 0], z[..., 0]
        return -0.5 * z.square() + w * z * x - 0.5 * x.square() - tau / 4 * x.pow(4) - c


class Square:
    """z ~ N(0, 1), x | z ~ N(a (z² - 1), s²): two modes of z where x is large."""

    theta = torch.tensor([0.8, math.log(0.5)], dtype=torch.float64)
    truth = torch.tensor([0.6, math.log(0.7)], dtype=torch.float64)

    def log_phi(self, theta: Tensor, u: Tensor, z: Tensor) -> Tensor:
        a, log_s = theta
        x, z = u[..., 0], z[..., 0]
        residual = (x - a * (z.square() - 1)) * torch.exp(-log_s)
        return -0.5 * (residual.square() + z.square()) - log_s - math.log(2 * math.pi)


Model = Quartic | Square
MODELS = pytest.mark.parametrize("model", [Quartic(), Square()], ids=["quartic", "square"])


def log_joint(model: Model, theta: Tensor) -> Tensor:
    """Return log phi (z, x) on the grid."""
    return model.log_phi(theta, X[:, None], Z.view(-1, 1, 1).expand(-1, len(X), 1))


def log_marginal(model: Model, theta: Tensor) -> Tensor:
    return torch.logsumexp(log_joint(model, theta), dim=0) + math.log(DZ)


def log_posterior(model: Model, theta: Tensor) -> Tensor:
    return log_joint(model, theta) - log_marginal(model, theta)


def log_family(alpha: Tensor) -> Tensor:
    return FAMILY.log_prob(alpha, Z.view(-1, 1, 1).expand(-1, len(X), 1), X[:, None])


def log_noise() -> Tensor:
    return -0.5 * (X / 1.5).square() - math.log(1.5 * math.sqrt(2 * math.pi))


def data_mass(model: Model) -> Tensor:
    """Return the probability of each x: of the model at another theta."""
    return torch.softmax(log_marginal(model, model.truth), dim=0)


def noise_term(model: Model, theta: Tensor, nu: float) -> Tensor:
    log_ratio = log_marginal(model, theta) - log_noise()
    return nu * DX * (log_noise().exp() * logsigmoid(math.log(nu) - log_ratio)).sum()


def nce(model: Model, theta: Tensor, nu: float) -> Tensor:
    log_ratio = log_marginal(model, theta) - log_noise()
    data = (data_mass(model) * logsigmoid(log_ratio - math.log(nu))).sum()
    return data + noise_term(model, theta, nu)


def vnce(model: Model, theta: Tensor, log_q: Tensor, nu: float) -> Tensor:
    log_ratio = log_joint(model, theta) - log_q - log_noise()
    bound = DZ * (log_q.exp() * logsigmoid(log_ratio - math.log(nu))).sum(dim=0)
    return (data_mass(model) * bound).sum() + noise_term(model, theta, nu)


def gap(model: Model, log_q: Tensor, nu: float) -> float:
    return float(nce(model, model.theta, nu) - vnce(model, model.theta, log_q, nu))


def class_probability(model: Model, nu: float) -> Tensor:
    return torch.sigmoid(log_marginal(model, model.theta) - log_noise() - math.log(nu))


def mean_divergence(model: Model, integrand: Tensor) -> float:
    """Return the mean over data of ∫ integrand dz."""
    return float((data_mass(model) * DZ * integrand.sum(dim=0)).sum())


@pytest.mark.slow
@MODELS
@pytest.mark.parametrize("nu", NUS)
def test_lemma_1_the_gap_is_the_expected_f_divergence(model: Model, nu: float) -> None:
    log_p, log_q = log_posterior(model, model.theta), log_family(ALPHA)
    kappa = class_probability(model, nu)
    # q f(p / q), f(u) = log(kappa + (1 - kappa) / u), in logarithms where p underflows.
    f = torch.logaddexp(kappa.log().expand_as(log_p), torch.log1p(-kappa) + log_q - log_p)
    expected = mean_divergence(model, log_q.exp() * f)
    assert gap(model, log_q, nu) == pytest.approx(expected, rel=1e-10)
    assert expected > 1e-3  # far more than rounding, so that this says something


@pytest.mark.slow
@MODELS
@pytest.mark.parametrize("nu", NUS)
def test_lemma_1_the_gap_is_the_difference_of_two_kullback_leibler_divergences(
    model: Model, nu: float
) -> None:
    log_p, log_q = log_posterior(model, model.theta), log_family(ALPHA)
    kappa = class_probability(model, nu)
    log_m = torch.logaddexp(kappa.log() + log_p, torch.log1p(-kappa) + log_q)
    to_posterior = mean_divergence(model, log_q.exp() * (log_q - log_p))
    to_mixture = mean_divergence(model, log_q.exp() * (log_q - log_m))
    assert gap(model, log_q, nu) == pytest.approx(to_posterior - to_mixture, rel=1e-10)


@pytest.mark.slow
@MODELS
@pytest.mark.parametrize("nu", NUS)
def test_theorem_1_the_bound_is_tight_at_the_posterior_and_only_there(
    model: Model, nu: float
) -> None:
    log_p, log_q = log_posterior(model, model.theta), log_family(ALPHA)
    assert gap(model, log_p, nu) == pytest.approx(0, abs=1e-12)
    gaps = [
        gap(model, torch.logaddexp(log_p + math.log1p(-share), log_q + math.log(share)), nu)
        for share in (0.01, 0.1, 0.5, 0.99)
    ]
    assert gaps[0] > 1e-10
    assert gaps == sorted(gaps)


@MODELS
def test_theorem_1_the_gap_tends_to_the_kullback_leibler_divergence_like_one_over_nu_squared(
    model: Model,
) -> None:
    # What is left is KL(q || kappa p + (1 - kappa) q) = kappa²/2 chi²(p || q) + O(kappa³), and
    # kappa is proportional to 1 / nu once nu is large. q is wide, so that chi² is finite.
    log_p = log_posterior(model, model.theta)
    log_q = log_family(torch.tensor([0.0, 0.0, math.log(2.0)], dtype=torch.float64))
    limit = mean_divergence(model, log_q.exp() * (log_q - log_p))
    chi_square = DZ * (log_q.exp() * torch.expm1(log_p - log_q).square()).sum(dim=0)
    # The next order is relatively of the size of kappa p / q: below .1 and .01 at these nu, even in
    # the tails of x, where this noise is a hundred times rarer than the model.
    for nu, tolerance in ((1e4, 0.1), (1e5, 0.01)):
        squared = class_probability(model, nu).square()
        leading = 0.5 * float((data_mass(model) * squared * chi_square).sum())
        assert limit - gap(model, log_q, nu) == pytest.approx(leading, rel=tolerance)
        assert leading == pytest.approx(leading_at_1(model, chi_square) / nu**2, rel=tolerance)


def leading_at_1(model: Model, chi_square: Tensor) -> float:
    """Return what is left times nu², in the limit of large nu."""
    ratio = torch.exp(log_marginal(model, model.theta) - log_noise())
    return 0.5 * float((data_mass(model) * ratio.square() * chi_square).sum())


def maximised(objective: Callable[[Tensor], Tensor], start: Tensor) -> tuple[Tensor, float]:
    found = minimise(lambda v: -objective(v), start, max_iterations=500)
    assert found.gradient_norm < 1e-5
    return found.parameters, -found.loss


@pytest.mark.slow
@pytest.mark.parametrize("nu", [1.0, 10.0])
def test_theorem_2_both_objectives_have_the_same_maximum(nu: float) -> None:
    model = Quartic()
    theta, largest = maximised(lambda t: nce(model, t, nu), model.theta)
    both, largest_bound = maximised(
        lambda v: vnce(model, v[:3], log_family(v[3:]), nu), torch.cat([model.theta, ALPHA])
    )
    # The values agree to the square of the gradients that are left, parameters to their size over
    # the smallest curvature, which is above 1e-2.
    assert largest_bound == pytest.approx(largest, abs=1e-8)
    torch.testing.assert_close(both[:3], theta, rtol=0, atol=1e-3)
    posterior = torch.tensor([float(theta[0]), 0.0, 0.0], dtype=torch.float64)
    torch.testing.assert_close(both[3:], posterior, rtol=0, atol=1e-3)


@pytest.mark.slow
def test_a_family_without_the_posterior_has_a_smaller_maximum() -> None:
    model, nu = Square(), 1.0
    _, largest = maximised(lambda t: nce(model, t, nu), model.theta)
    _, largest_bound = maximised(
        lambda v: vnce(model, v[:2], log_family(v[2:]), nu), torch.cat([model.theta, ALPHA])
    )
    assert largest_bound < largest - 1e-3


@MODELS
def test_the_posterior_is_the_proposal_without_variance(model: Model) -> None:
    log_p = log_posterior(model, model.theta)
    wide = log_family(torch.tensor([0.0, 0.0, math.log(4.0)], dtype=torch.float64))

    def relative_variance(log_proposal: Tensor) -> Tensor:
        """Return the variance (x,) of phi(x, z) / (q(z) phi(x)) for z from the proposal q."""
        return DZ * (2 * log_p - log_proposal).exp().sum(dim=0) - 1

    middle = X.abs() < 3
    torch.testing.assert_close(
        relative_variance(log_p)[middle],
        torch.zeros(int(middle.sum())).double(),
        rtol=0,
        atol=1e-12,
    )
    assert (relative_variance(wide)[middle] > 0.1).all()
    halfway = torch.logaddexp(log_p, wide) - math.log(2)
    assert (relative_variance(halfway) < relative_variance(wide))[middle].all()
    assert (relative_variance(halfway)[middle] > 1e-3).all()


@MODELS
@pytest.mark.parametrize("nu", NUS)
def test_the_engines_objective_of_many_draws_is_that_of_quadrature(model: Model, nu: float) -> None:
    # k midpoints of equal mass leave out tails of mass 1 / (2k), over which log ratios grow like
    # z⁴ at most: about (log k)² / k of them, .003 here; phi / q stays bounded.
    k, some = 20_000, X[80:161:20]
    alpha = torch.tensor([0.0, 0.0, math.log(3.0)], dtype=torch.float64)
    levels = (torch.arange(k, dtype=torch.float64) + 0.5) / k
    uniforms = levels.view(-1, 1, 1).expand(-1, len(some), 1)
    noise = log_noise()[80:161:20]
    rows = Rows(some[:, None], noise, uniforms)
    draws = draw_latents(FAMILY, alpha, rows)
    # nu is 1 for as many noise rows as data rows; another nu enters as a factor on the noise.
    shifted = Rows(rows.u, noise + math.log(nu), uniforms)
    found = vnce_terms(model, model.theta, Contrast(shifted, shifted), draws, draws)

    log_ratio = log_joint(model, model.theta) - log_family(alpha) - log_noise() - math.log(nu)
    bound = DZ * (log_family(alpha).exp() * logsigmoid(log_ratio)).sum(dim=0)[80:161:20].mean()
    exact = (log_marginal(model, model.theta) - log_noise() - math.log(nu))[80:161:20]
    assert float(found.data) == pytest.approx(float(bound), rel=3e-3)
    assert float(found.noise) == pytest.approx(float(logsigmoid(-exact).mean()), rel=1e-4)

"""Objectives of the mixture, J_NCE and J_VNCE, sums over z exact.

Each is a mean per data row, (b,), to be maximised. A `Density` returns the log density (2, b, n) of
(x, z) at the parameters of b mixtures and x (b, n), such as `model.log_joint` at theta (b,).
"""

from collections.abc import Callable

from torch import Tensor

from vnce_engine.contrastive.objective import DATA, NOISE, log_probability
from vnce_engine.experiments.mixture.data import MixtureData
from vnce_engine.experiments.mixture.model import log_noise

Density = Callable[[Tensor, Tensor], Tensor]


def nce(density: Density, parameters: Tensor, data: MixtureData, nu: float) -> Tensor:
    """Return J_NCE (equation "J" of the paper), the latent summed out."""
    log_marginal = density(parameters, data.x).logsumexp(dim=0)
    log_ratio = log_marginal - log_noise(data.noise_scale, data.x)
    of_data = log_probability(log_ratio, nu, DATA).mean(dim=-1)
    return of_data + _noise_term(density, parameters, data, nu)


def vnce(
    density: Density, parameters: Tensor, log_q: Tensor, data: MixtureData, nu: float
) -> Tensor:
    """Return J_VNCE (equation "vnce objective"): the data term bounded, its expectation exact.

    With the sum over z exact, importance sampling in the noise term gives the same for every q,
    which is why `log_q` (2, b, n) is needed at the data alone.
    """
    log_ratio = density(parameters, data.x) - log_q - log_noise(data.noise_scale, data.x)
    of_draws = log_q.exp() * log_probability(log_ratio, nu, DATA)
    return of_draws.sum(dim=0).mean(dim=-1) + _noise_term(density, parameters, data, nu)


def _noise_term(density: Density, parameters: Tensor, data: MixtureData, nu: float) -> Tensor:
    log_marginal = density(parameters, data.y).logsumexp(dim=0)
    log_ratio = log_marginal - log_noise(data.noise_scale, data.y)
    return nu * log_probability(log_ratio, nu, NOISE).mean(dim=-1)

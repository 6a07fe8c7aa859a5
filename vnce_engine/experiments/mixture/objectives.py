"""Objectives of the mixture: NCE, VNCE and the log likelihood, sums over z exact.

Each is a mean per data row, (b,), to be maximised. Shapes as in `model`.
"""

import math

from torch import Tensor
from torch.nn.functional import logsigmoid


def nce(
    log_density_x: Tensor,
    log_density_y: Tensor,
    log_noise_x: Tensor,
    log_noise_y: Tensor,
    nu: float,
) -> Tensor:
    """Return J_NCE (equation "J" of the paper), the latent summed out.

    Shapes: log densities of (x, z) and (y, z) are (2, b, n), those of the noise (b, n).
    """
    log_ratio = log_density_x.logsumexp(dim=0) - log_noise_x
    return logsigmoid(log_ratio - math.log(nu)).mean(dim=-1) + _noise_term(
        log_density_y, log_noise_y, nu
    )


def vnce(
    log_density_x: Tensor,
    log_q_x: Tensor,
    log_density_y: Tensor,
    log_noise_x: Tensor,
    log_noise_y: Tensor,
    nu: float,
) -> Tensor:
    """Return J_VNCE (equation "vnce objective"): the data term bounded, its expectation exact.

    With the sum over z exact, importance sampling in the noise term gives the same for every q,
    which is why `log_q_x` (2, b, n) is needed at the data alone.
    """
    log_ratio = log_density_x - log_q_x - log_noise_x
    data_term = (log_q_x.exp() * logsigmoid(log_ratio - math.log(nu))).sum(dim=0).mean(dim=-1)
    return data_term + _noise_term(log_density_y, log_noise_y, nu)


def _noise_term(log_density_y: Tensor, log_noise_y: Tensor, nu: float) -> Tensor:
    log_ratio = log_density_y.logsumexp(dim=0) - log_noise_y
    return nu * logsigmoid(math.log(nu) - log_ratio).mean(dim=-1)

"""The variational noise-contrastive objective, in log space."""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


class ObjectiveTerms(NamedTuple):
    """The two terms of the objective, each a scalar tensor; their sum is to be maximised."""

    data: Tensor
    noise: Tensor

    @property
    def total(self) -> Tensor:
        """The objective itself, per data row."""
        return self.data + self.noise


def vnce_objective(log_ratio_data: Tensor, log_ratio_noise: Tensor, nu: float) -> ObjectiveTerms:
    """Return the two terms of the VNCE lower bound; their sum is to be maximised.

    Shapes: `log_ratio_data` (k, n); `log_ratio_noise` (k, n_noise). Each is
    log phi - log q - log p_noise. Draws of a data row are averaged outside the logarithm (the
    bound), those of a noise row inside it (importance sampling). With k = 1 and exact log
    marginals this is the NCE objective.
    Source: Rhodes and Gutmann (2019), eq. (10), with `nu` = m / n.
    """
    if not (nu > 0 and math.isfinite(nu)):
        raise ValueError(f"`nu` must be positive and finite, got {nu!r}")
    return ObjectiveTerms(data_term(log_ratio_data, nu), noise_term(log_ratio_noise, nu))


def data_term(log_ratio: Tensor, nu: float) -> Tensor:
    """Return the term of data rows (k, n), which is all that q is optimised by."""
    return logsigmoid(log_ratio - math.log(nu)).mean()


def noise_term(log_ratio: Tensor, nu: float) -> Tensor:
    """Return the term of noise rows (k, n_noise)."""
    log_marginal = torch.logsumexp(log_ratio, dim=0) - math.log(log_ratio.shape[0])
    return nu * logsigmoid(math.log(nu) - log_marginal).mean()

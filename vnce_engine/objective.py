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
    log_nu = math.log(nu)
    log_marginal = torch.logsumexp(log_ratio_noise, dim=0) - math.log(log_ratio_noise.shape[0])
    data = logsigmoid(log_ratio_data - log_nu).mean()
    noise = nu * logsigmoid(log_nu - log_marginal).mean()
    return ObjectiveTerms(data, noise)

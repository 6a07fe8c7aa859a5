"""J_NCE and J_VNCE, row by row from log ratios, in log space: values, slopes, curvature.

A row's log ratio is log phi - log q - log p_noise. With nu noise rows for each data row,
h = sigma(log ratio - log nu) is the probability that the model gives it of being data.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

# Noise rows a data row that are enough for a Hessian, which needs fewer rows than a gradient.
CURVATURE_NOISE_RATIO = 4
# A class probability that leaves less than this to the other class counts as certain.
_CERTAIN = 1e-6
# Signs of the two classes.
DATA, NOISE = 1.0, -1.0


class RowTerms(NamedTuple):
    """Terms of rows, and their derivatives in the log ratio."""

    value: Tensor
    slope: Tensor


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

    Shapes: `log_ratio_data` (k, n); `log_ratio_noise` (k, n_noise). Draws of a data row are
    averaged outside the logarithm (the bound), those of a noise row inside it (importance
    sampling). With k = 1 and exact log marginals this is the NCE objective.
    Source: Rhodes and Gutmann (2019), eq. (10), with `nu` = m / n.
    """
    if not (nu > 0 and math.isfinite(nu)):
        raise ValueError(f"`nu` must be positive and finite, got {nu!r}")
    return ObjectiveTerms(data_term(log_ratio_data, nu), noise_term(log_ratio_noise, nu))


def data_term(log_ratio: Tensor, nu: float) -> Tensor:
    """Return the term of data rows (k, n), which is all that q is optimised by."""
    return log_probability(log_ratio, nu, DATA).mean()


def noise_term(log_ratio: Tensor, nu: float) -> Tensor:
    """Return the term of noise rows (k, n_noise)."""
    return nu * log_probability(log_mean_weight(log_ratio), nu, NOISE).mean()


def log_probability(log_ratio: Tensor, nu: float, sign: Tensor | float) -> Tensor:
    """Return log h of `DATA`, log (1 - h) of `NOISE`: how likely rows are to be what they are."""
    return logsigmoid(sign * (log_ratio - math.log(nu)))


def row_terms(log_ratio: Tensor, nu: float, sign: Tensor | float) -> RowTerms:
    """Return `log_probability` with its derivative, 1 - h of `DATA`, -h of `NOISE`."""
    logits = sign * (log_ratio - math.log(nu))
    return RowTerms(logsigmoid(logits), sign * torch.sigmoid(-logits))


def data_probability(log_ratio: Tensor, nu: float) -> Tensor:
    """Return h."""
    return torch.sigmoid(log_ratio - math.log(nu))


def noise_probability(log_ratio: Tensor, nu: float) -> Tensor:
    """Return 1 - h."""
    return torch.sigmoid(math.log(nu) - log_ratio)


def curvature_weights(log_ratio: Tensor, nu: float) -> Tensor:
    """Return h (1 - h): minus the second derivative of a row's term, of either class."""
    probability = data_probability(log_ratio, nu)
    return probability * (1 - probability)


def separated_share(wrong: Tensor) -> float:
    """Return the share of rows (n,) whose probability of the wrong class is next to nothing."""
    return float((wrong < _CERTAIN).to(wrong.dtype).mean())


def log_mean_weight(log_weights: Tensor) -> Tensor:
    """Return the log of the mean weight of k draws, (k, ...) to (...)."""
    return torch.logsumexp(log_weights, dim=0) - math.log(len(log_weights))


def effective_share(log_weights: Tensor) -> Tensor:
    """Return (sum w)² / (k sum w²) of k draws, (k, ...) to (...): 1 where they weigh the same."""
    twice_sum = 2 * torch.logsumexp(log_weights, dim=0)
    sum_of_squares = torch.logsumexp(2 * log_weights, dim=0)
    return torch.exp(twice_sum - sum_of_squares) / len(log_weights)

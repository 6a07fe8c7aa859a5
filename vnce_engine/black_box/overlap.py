"""How well noise serves: whether it can be told from data with too much certainty."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from vnce_engine.contrastive.objective import (
    data_probability,
    effective_share,
    log_mean_weight,
    noise_probability,
    separated_share,
    vnce_objective,
)

# Shares from which on noise counts as too easy: of certain rows, and of the confusion that noise
# equal to the data would leave.
_MOST_CERTAIN = 0.5
_LEAST_CONFUSION = 0.1
# Share of noise rows that must carry the weight, and of latent draws.
_LEAST_EFFECTIVE = 0.01
_LEAST_EFFECTIVE_DRAWS = 0.1

_SEPARATED = (
    "Noise and data are classified with near certainty, so that c and all that scales the density "
    "are hardly determined: their estimates may have diverged. Fit the noise to the data, with "
    "their covariance if possible, bring its spread near theirs, or raise `nu`."
)
_FEW_NOISE_ROWS = (
    "Only a few noise rows carry nearly all the weight: most noise falls where the model is not, "
    "or misses its tails. Bring the noise nearer to the data, or raise `nu`."
)
_FEW_DRAWS = (
    "Only a few latent draws carry nearly all the weight of their rows: q is far from the "
    "posterior. Give q a richer family or more steps, or raise `num_draws`."
)


@dataclass(frozen=True)
class Overlap:
    """Figures from the log ratios at an estimate."""

    loss: float
    """Mean logistic loss per row of both classes, nats; log 2 or less, and 0 if separated."""
    separated_share: float
    """Share of data and noise rows whose class is certain beyond 1 - 1e-6."""
    confusion: float
    """Mean probability of the wrong class over data rows, as a share of nu / (1 + nu), which it is
    where noise and data are the same."""
    effective_noise: float
    """(sum w)² / (n sum w²) over noise rows, w = phi / p_noise: 1 where they weigh the same."""
    effective_draws: float
    """Mean over data rows of (sum w)² / (k sum w²) over draws, w = phi / q: 1 at the posterior."""
    advice: tuple[str, ...]
    """What is wrong and what to do about it; empty where all is well."""


def noise_overlap(log_ratio_data: Tensor, log_ratio_noise: Tensor, nu: float) -> Overlap:
    """Judge the noise, from log phi - log q - log p_noise (k, n) and (k, n_noise).

    Raises `ValueError` if a log ratio of a data row is NaN or plus infinity: there the noise has
    no density.
    """
    if torch.isnan(log_ratio_data).any() or (log_ratio_data == math.inf).any():
        raise ValueError("`log_ratio_data` must be below infinity: the noise must reach all data")
    wrong_data = noise_probability(log_ratio_data, nu).mean(dim=0)
    marginal = log_mean_weight(log_ratio_noise)
    wrong_noise = data_probability(marginal, nu)
    wrong = torch.cat([wrong_data, wrong_noise])
    separated = separated_share(wrong)
    confusion = float(wrong_data.mean()) * (1 + nu) / nu
    effective_noise = float(effective_share(marginal))
    effective_draws = float(effective_share(log_ratio_data).mean())
    advice = []
    if separated > _MOST_CERTAIN or confusion < _LEAST_CONFUSION:
        advice.append(_SEPARATED)
    if effective_noise < _LEAST_EFFECTIVE:
        advice.append(_FEW_NOISE_ROWS)
    if effective_draws < _LEAST_EFFECTIVE_DRAWS:
        advice.append(_FEW_DRAWS)
    total = float(vnce_objective(log_ratio_data, log_ratio_noise, nu).total)
    return Overlap(
        loss=-total / (1 + nu),
        separated_share=separated,
        confusion=confusion,
        effective_noise=effective_noise,
        effective_draws=effective_draws,
        advice=tuple(advice),
    )

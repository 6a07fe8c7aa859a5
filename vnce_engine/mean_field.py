"""The E-step: a product of univariate truncated normals fitted to each row's missing cells.

For a truncated Gaussian model the best factor of one missing cell, the others' means m given, is
the truncated normal with sigma² = 1 / K_ii and mu = (h_i - sum_{j != i} K_ij m_j) / K_ii. A sweep
sets each factor in turn. It raises the evidence lower bound, which is the VNCE bound in the limit
of small class probability (Rhodes and Gutmann, 2019, Theorem 1); J_VNCE itself may fall a little.

An indefinite K may have no integral over a row's missing cells, and sweeps would then carry their
means to infinity. So mu is held at a ceiling, twice the column's largest observed value: the bound
holds for every q, and a proper posterior does not reach there.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.special import erfc

from vnce_engine import truncated_normal
from vnce_engine.blocks import Block
from vnce_engine.observations import Observations

# Beyond this alpha = -mu / sigma a mean is taken from three levels of its continued fraction,
# right to 1e-8 there, because erfc is about to underflow.
_TAIL_ALPHA = 30.0
# How far beyond the largest observed value of its column q's mu may go.
_CEILING_FACTOR = 2.0


class Completion(NamedTuple):
    """What an E-step says about one block besides what it wrote into it."""

    control: Tensor
    """(d + 1, d + 1): sum over rows of slope * (E_q[a aᵀ] - the draws' mean of a aᵀ)."""
    row_control: Tensor
    """(b,): slope * (E_q[log ratio] - the draws' mean log ratio), at the theta of the E-step."""


def ceiling(observations: Observations) -> Tensor:
    """Return how high q's mu may go in each column (d,)."""
    return _CEILING_FACTOR * observations.values.max(dim=0).values


def complete(block: Block, augmented: Tensor, log_nu: float, num_sweeps: int) -> Completion:
    """Fit q to the block's missing cells under `augmented`, draw them, return control variates.

    The slope of a row is the derivative of its term log sigma(±(log ratio - log nu)) at the mean
    log ratio under q, hence free of the draws: slope times (exact minus sampled) has mean zero and
    takes the draws' first-order error out of the objective.
    """
    if not block.coordinate.numel():
        block.log_ratio_offset = -block.log_noise.expand(block.num_draws, -1)
        zeros = block.log_noise.new_zeros
        return Completion(zeros(augmented.shape), zeros(block.num_rows))
    mean, mu = sweep(block, augmented, num_sweeps)
    variance_of_parent = augmented.diagonal().reciprocal()[block.coordinate]
    sigma = variance_of_parent.sqrt()
    cells = truncated_normal.quantile(block.uniforms, mu, sigma)
    block.fill(cells)
    # log q is log_normaliser - ½ (z - mu)² / sigma² in every cell, and likewise in expectation.
    normaliser = 0.5 * torch.log(2 * math.pi * variance_of_parent)
    normaliser = _sum_by_row(block, normaliser + truncated_normal.log_mass(mu, sigma))
    squared = (cells - mu).square_().div_(variance_of_parent)
    block.log_ratio_offset = normaliser + 0.5 * _sum_by_row(block, squared) - block.log_noise
    # The variance is sigma² - m (m - mu), so that E (z - mu)² = sigma² - mu (m - mu).
    rise = block.cell_mean - mu
    cell_variance = (variance_of_parent - block.cell_mean * rise).clamp_(min=0)
    squared = 1 - mu * rise / variance_of_parent
    offset = normaliser + 0.5 * _sum_by_row(block, squared) - block.log_noise
    return _control_variates(block, augmented, log_nu, mean, cell_variance, offset)


def sweep(block: Block, augmented: Tensor, num_sweeps: int) -> tuple[Tensor, Tensor]:
    """Fit q by `num_sweeps` sweeps, from the means it has; write its means into the block.

    Returns the expected rows (d + 1, b) and mu (p,).
    """
    mean = block.expected_rows()
    mu = torch.empty_like(block.cell_mean)
    scale = augmented.diagonal().rsqrt().tolist()
    ceilings = block.ceiling.tolist()
    relative = augmented / augmented.diagonal().unsqueeze(1)
    gaps = list(block.gaps())
    for _ in range(num_sweeps):
        for coordinate, cells, columns in gaps:
            field = torch.mv(mean.mT, relative[coordinate])[columns]
            unbounded = block.cell_mean[cells] - field
            mu[cells] = unbounded.clamp(max=ceilings[coordinate])
            block.cell_mean[cells] = _mean(mu[cells], scale[coordinate])
            mean[coordinate, columns] = block.cell_mean[cells]
    return mean, mu


def _mean(mu: Tensor, sigma: float) -> Tensor:
    """Return the mean of the truncated normal; `truncated_normal.moments` in a quarter of its time.

    Right to about (mu / sigma)² * 1e-16, relative, in the tail.
    """
    alpha = mu / -sigma
    body = alpha.clamp(max=_TAIL_ALPHA)
    hazard = torch.exp(-0.5 * body.square()) / erfc(body / math.sqrt(2))
    mean: Tensor = math.sqrt(2 / math.pi) * hazard - body
    if alpha.max() > _TAIL_ALPHA:
        tail = alpha.clamp(min=_TAIL_ALPHA)
        mean = torch.where(alpha > _TAIL_ALPHA, 1 / (tail + 2 / (tail + 3 / tail)), mean)
    return sigma * mean


def _control_variates(
    block: Block,
    augmented: Tensor,
    log_nu: float,
    mean: Tensor,
    cell_variance: Tensor,
    offset: Tensor,
) -> Completion:
    own = augmented.diagonal()[block.coordinate] * cell_variance
    expected = offset - 0.5 * ((augmented @ mean).mul_(mean).sum(dim=0) + _sum_by_row(block, own))
    slope = (
        -torch.sigmoid(expected - log_nu) if block.is_noise else torch.sigmoid(log_nu - expected)
    )
    exact = (mean * slope) @ mean.mT
    exact.diagonal().index_add_(0, block.coordinate, cell_variance * slope[block.column])
    draws = block.flat_draws
    sampled = (draws * slope.repeat(block.num_draws)) @ draws.mT / block.num_draws
    log_ratio = log_ratios(block, augmented).mean(dim=0)
    return Completion(exact - sampled, slope * (expected - log_ratio))


def log_ratios(block: Block, augmented: Tensor) -> Tensor:
    """Return log phi - log q - log noise (k, b) of the block's draws under `augmented`."""
    draws = block.flat_draws
    quadratic = (augmented @ draws).mul_(draws).sum(dim=0).view(block.num_draws, -1)
    return torch.sub(block.log_ratio_offset, quadratic, alpha=0.5)


def _sum_by_row(block: Block, cells: Tensor) -> Tensor:
    """Sum packed cells (..., p) into their rows (..., b)."""
    total = cells.new_zeros(*cells.shape[:-1], block.num_rows)
    return total.index_add_(-1, block.column, cells)

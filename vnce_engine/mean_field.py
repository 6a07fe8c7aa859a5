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
from torch.special import erfc, ndtri

from vnce_engine import truncated_normal
from vnce_engine.blocks import Block
from vnce_engine.observations import Observations

# Beyond this alpha = -mu / sigma erfc is about to underflow. A mean is taken from three levels of
# its continued fraction there, right to 1e-8, and draws from `truncated_normal`.
_TAIL_ALPHA = 30.0
# How far beyond the largest observed value of its column q's mu may go.
_CEILING_FACTOR = 2.0


class Completion(NamedTuple):
    """What an E-step says about one block besides what it wrote into it."""

    control: Tensor
    """(d + 1, d + 1): sum over rows of slope * (E_q[a aᵀ] - the draws' mean of a aᵀ)."""
    slope: Tensor
    """(b,): the derivative of each row's term at its mean log ratio."""
    expected_log_ratio: Tensor
    """(b,): E_q[log ratio] at the theta of the E-step."""

    def row_control(self, log_ratio: Tensor) -> Tensor:
        """Return (b,): slope * (E_q[log ratio] - the draws' mean), at the theta of the E-step.

        `log_ratio` (k, b) has those of the draws.
        """
        return self.slope * (self.expected_log_ratio - log_ratio.mean(dim=0))


def ceiling(observations: Observations) -> Tensor:
    """Return how high q's mu may go in each column (d,)."""
    return _CEILING_FACTOR * observations.values.max(dim=0).values


def complete(block: Block, augmented: Tensor, log_nu: float, num_sweeps: int) -> Completion:
    """Fit q to the block's missing cells under `augmented`, draw them, return control variates.

    The slope of a row is the derivative of its term log sigma(±(log ratio - log nu)) at the mean
    log ratio under q, hence free of the draws: slope times (exact minus sampled) has mean zero and
    takes the draws' first-order error out of the objective.
    """
    if not block.cell_mean.numel():
        block.log_ratio_offset = -block.log_noise.expand(block.num_draws, -1)
        zeros = block.log_noise.new_zeros
        return Completion(zeros(augmented.shape), zeros(block.num_rows), zeros(block.num_rows))
    mean, mu = sweep(block, augmented, num_sweeps)
    variance_of_parent = augmented.diagonal().reciprocal()[block.coordinate]
    cells, log_mass = _draw(block.uniforms, mu, variance_of_parent.sqrt())
    block.fill(cells)
    # log q is log_normaliser - ½ (z - mu)² / sigma² in every cell, and likewise in expectation.
    normaliser = _sum_by_row(block, log_mass + 0.5 * torch.log(2 * math.pi * variance_of_parent))
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
    alpha = torch.empty_like(block.cell_mean)
    root = augmented.diagonal().sqrt()
    # A row of this times the others' means is the cell's alpha = -mu / sigma.
    field = augmented / root.unsqueeze(1)
    field.diagonal().zero_()
    lowest = (-block.ceiling * root[:-1]).tolist()
    sigma = root.reciprocal()
    scale = sigma.tolist()
    gaps = list(block.gaps())
    for _ in range(num_sweeps):
        for coordinate, cells, columns in gaps:
            own = torch.mv(mean.mT, field[coordinate]).index_select(0, columns)
            alpha[cells] = own.clamp_(min=lowest[coordinate])
            own_mean = _standard_mean(own).mul_(scale[coordinate])
            block.cell_mean[cells] = own_mean
            mean[coordinate].index_copy_(0, columns, own_mean)
    return mean, alpha.mul_(-sigma[block.coordinate])


def _standard_mean(alpha: Tensor) -> Tensor:
    """Return the mean of t - alpha for t standard normal truncated to t >= alpha.

    In a quarter of the time of `truncated_normal.moments`; right to about alpha² * 1e-16,
    relative, in the tail.
    """
    body = alpha.clamp(max=_TAIL_ALPHA)
    root = body * math.sqrt(0.5)
    hazard = root.square().neg_().exp_().mul_(math.sqrt(2 / math.pi)).div_(erfc(root))
    mean: Tensor = hazard.sub_(body)
    if alpha.max() > _TAIL_ALPHA:
        tail = alpha.clamp(min=_TAIL_ALPHA)
        mean = torch.where(alpha > _TAIL_ALPHA, 1 / (tail + 2 / (tail + 3 / tail)), mean)
    return mean


def _draw(uniforms: Tensor, mu: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    """Return draws (k, p) from q by its quantile functions, and its log masses (p,).

    The upper tail serves all uniforms: where it rounds to 1, seven sigmas below the mean, a draw
    loses digits, which does not matter because log q is taken at the draw as it is.
    """
    alpha = -mu / sigma
    if alpha.max() > _TAIL_ALPHA:
        cells = truncated_normal.quantile(uniforms, mu, sigma)
        return cells, truncated_normal.log_mass(mu, sigma)
    mass = 0.5 * erfc(alpha * math.sqrt(0.5))
    distance: Tensor = ndtri((1 - uniforms) * mass)
    return distance.neg_().sub_(alpha).clamp_(min=0).mul_(sigma), mass.log()


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
    weighted = (block.draws * slope).flatten(1)
    return Completion(exact.addmm_(weighted, draws.mT, alpha=-1 / block.num_draws), slope, expected)


def log_ratios(block: Block, augmented: Tensor) -> Tensor:
    """Return log phi - log q - log noise (k, b) of the block's draws under `augmented`."""
    draws = block.flat_draws
    quadratic = (augmented @ draws).mul_(draws).sum(dim=0).view(block.num_draws, -1)
    return torch.sub(block.log_ratio_offset, quadratic, alpha=0.5)


def _sum_by_row(block: Block, cells: Tensor) -> Tensor:
    """Sum packed cells (..., p) into their rows (..., b)."""
    total = cells.new_zeros(*cells.shape[:-1], block.num_rows)
    return total.index_add_(-1, block.column, cells)

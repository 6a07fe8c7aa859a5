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
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.special import erfc, ndtri

from vnce_engine import truncated_normal
from vnce_engine.blocks import Block, Cells
from vnce_engine.observations import Observations
from vnce_engine.symmetric_products import quadratics

# Beyond this alpha = -mu / sigma erfc is about to underflow. A mean is taken from three levels of
# its continued fraction there, right to 1e-8, and draws from `truncated_normal`.
_TAIL_ALPHA = 30.0
# How far beyond the largest observed value of its column q's mu may go.
_CEILING_FACTOR = 2.0
# Columns whose factors are set at once, at most.
_GROUP = 24


class Factors(NamedTuple):
    """q: a normal truncated to [0, inf) for each missing cell, independent given the row."""

    rows: Tensor
    """(d + 1, b): the rows, missing cells at their means."""
    mean: Tensor
    """(p,): the missing cells' means alone."""
    alpha: Tensor
    """(p,): -mu / sigma."""
    sigma: Tensor
    """(p,): standard deviation of the parent normal."""
    tail: Tensor
    """(p,): erfc(alpha / √2), twice the parent's mass of [0, inf); of no use in the far tail."""
    place: Cells
    """Where the missing cells are."""

    @property
    def mu(self) -> Tensor:
        """(p,): mean of the parent normal."""
        return -self.alpha * self.sigma

    def reaches_tail(self) -> bool:
        """Return whether some alpha is beyond what erfc can tell; NaN, which came of one, is."""
        return not bool((self.alpha <= _TAIL_ALPHA).all())


class _Group(NamedTuple):
    """The missing cells, p_g of them, of neighbouring columns whose factors are set at once."""

    columns: slice
    place: Tensor
    """int64 (p_g,): where they are in the rows, flattened."""
    lowest: Tensor
    """(p_g,): alpha / √2 goes no lower: that is the ceiling of mu."""
    sigma: Tensor
    """(p_g,)"""
    scaled_alpha: Tensor
    """(p_g,): alpha / √2, which erfc takes. It shares q's memory, as the next two do."""
    tail: Tensor
    """(p_g,): erfc of that."""
    mean: Tensor
    """(p_g,)"""


# Writes the mean of t - alpha, for t standard normal truncated to t >= alpha, into `out`, and
# erfc(alpha / √2) into `tail`. Takes alpha / √2.
_StandardMean = Callable[[Tensor, Tensor, Tensor], None]


class Completion(NamedTuple):
    """What an E-step says about one block besides what it wrote into it."""

    control: Tensor
    """(d + 1, d + 1): sum over rows of slope * (E_q[a aᵀ] - the draws' mean of a aᵀ)."""
    constant: Tensor
    """The same sum, a scalar, of the log ratio's other part, -log q - log noise."""
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
        block.log_ratio_offset.copy_(-block.log_noise)
        zeros = block.log_noise.new_zeros
        rows = zeros(block.num_rows)
        return Completion(zeros(augmented.shape), zeros(()), rows, rows)
    factors = sweep(block, augmented, num_sweeps)
    place = factors.place
    excess, log_mass = _draw(block.uniforms, factors)
    block.fill(place, excess * factors.sigma)
    # log q is log_normaliser - ½ (z - mu)² / sigma² in every cell, and likewise in expectation.
    log_normaliser = log_mass.add_(_log_root(augmented).index_select(0, place.coordinate))
    normaliser = _sum_by_row(block, place, log_normaliser) - block.log_noise
    squared = excess.add_(factors.alpha).square_()
    block.log_ratio_offset.copy_(normaliser + 0.5 * _sum_by_row(block, place, squared))
    return _control_variates(block, augmented, log_nu, factors, normaliser)


def sweep(block: Block, augmented: Tensor, num_sweeps: int) -> Factors:
    """Fit q by `num_sweeps` sweeps, from the means it has; write its means into the block."""
    factors = _swept(block, augmented, num_sweeps, _mean_near)
    if factors.reaches_tail():
        factors = _swept(block, augmented, num_sweeps, _mean_anywhere)
    block.cell_mean.copy_(factors.mean)
    return factors


def _swept(
    block: Block, augmented: Tensor, num_sweeps: int, standard_mean: _StandardMean
) -> Factors:
    """Return q after `num_sweeps` sweeps, group by group of columns."""
    place = block.cells()
    rows = block.expected_rows(place)
    scaled_alpha, tail, mean = rows.new_empty(3, len(place.flat))
    root = augmented.diagonal().rsqrt()
    # A row of this times the others' means is the cell's alpha / √2.
    field = augmented * (math.sqrt(0.5) * root).unsqueeze(1)
    field.diagonal().zero_()
    lowest = (block.ceiling * (-math.sqrt(0.5) / root[:-1])).index_select(0, place.coordinate)
    sigma = root.index_select(0, place.coordinate)
    columns = _columns_at_once(augmented[:-1, :-1])
    sizes = [sum(block.counts[part]) for part in columns]
    cells = (place.flat, lowest, sigma, scaled_alpha, tail, mean)
    parts = (tensor.split(sizes) for tensor in cells)
    groups = [_Group(*group) for group in zip(columns, *parts, strict=True)]
    for _ in range(num_sweeps):
        for group in groups:
            _set_at_once(group, field, rows, standard_mean)
    return Factors(rows, mean, scaled_alpha.mul_(math.sqrt(2)), sigma, tail, place)


def _set_at_once(group: _Group, field: Tensor, rows: Tensor, standard_mean: _StandardMean) -> None:
    """Set the factors of a group, all other means given, in q's memory and in the rows."""
    if not len(group.place):
        return
    first = group.columns.start * rows.shape[1]
    sums = field[group.columns] @ rows
    torch.index_select(sums.view(-1), 0, group.place - first, out=group.scaled_alpha)
    torch.maximum(group.scaled_alpha, group.lowest, out=group.scaled_alpha)
    standard_mean(group.scaled_alpha, group.mean, group.tail)
    rows.view(-1).scatter_(0, group.place, group.mean.mul_(group.sigma))


def _columns_at_once(precision: Tensor) -> list[slice]:
    """Return neighbouring columns, in groups as large as may be, whose factors may be set at once.

    That never lowers the evidence bound where 2 D - K is positive definite, D being the diagonal
    of the group's K. For means m and their change s the bound is made of terms of single factors,
    whose curvature is at least D, and of -½ mᵀ(K - D)m: each factor's gain, others held, is at
    least ½ D s², and that they move together costs no more than ½ sᵀ(K - D)s.
    """
    root = precision.diagonal().rsqrt()
    allowed = -precision * torch.outer(root, root)
    allowed.diagonal().fill_(1.0)
    groups = []
    waiting = [slice(i, min(i + _GROUP, len(allowed))) for i in range(0, len(allowed), _GROUP)]
    while waiting:
        part = waiting.pop(0)
        middle = (part.start + part.stop) // 2
        if middle == part.start or not torch.linalg.cholesky_ex(allowed[part, part]).info:
            groups.append(part)
        else:
            waiting[:0] = [slice(part.start, middle), slice(middle, part.stop)]
    return groups


def _mean_near(scaled_alpha: Tensor, out: Tensor, tail: Tensor) -> None:
    """Be a `_StandardMean` up to `_TAIL_ALPHA`.

    In a quarter of the time of `truncated_normal.moments`; right to about alpha² * 1e-16, relative.
    """
    erfc(scaled_alpha, out=tail)
    torch.mul(scaled_alpha, scaled_alpha, out=out)
    out.neg_().exp_().div_(tail)
    out.sub_(scaled_alpha, alpha=math.sqrt(math.pi)).mul_(math.sqrt(2 / math.pi))


def _mean_anywhere(scaled_alpha: Tensor, out: Tensor, tail: Tensor) -> None:
    """Be a `_StandardMean` for any alpha."""
    _mean_near(scaled_alpha.clamp(max=_TAIL_ALPHA * math.sqrt(0.5)), out, tail)
    alpha = math.sqrt(2) * scaled_alpha
    far = alpha.clamp(min=_TAIL_ALPHA)
    out.copy_(torch.where(alpha > _TAIL_ALPHA, 1 / (far + 2 / (far + 3 / far)), out))


def _draw(uniforms: Tensor, factors: Factors) -> tuple[Tensor, Tensor]:
    """Return draws (k, p) from q in units of sigma, and its log masses (p,).

    The upper tail serves all uniforms: where it rounds to 1, seven sigmas below the mean, a draw
    loses digits, which does not matter because log q is taken at the draw as it is.
    """
    alpha = factors.alpha
    if factors.reaches_tail():
        mu, sigma = -alpha, torch.ones_like(alpha)
        return truncated_normal.quantile(uniforms, mu, sigma), truncated_normal.log_mass(mu, sigma)
    mass = 0.5 * factors.tail
    distance: Tensor = ndtri((1 - uniforms).mul_(mass))
    return distance.neg_().sub_(alpha).clamp_(min=0), mass.log_()


def _log_root(augmented: Tensor) -> Tensor:
    """Return ½ log(2 pi sigma²) of each coordinate (d + 1,)."""
    return 0.5 * (math.log(2 * math.pi) - augmented.diagonal().log())


def _control_variates(
    block: Block, augmented: Tensor, log_nu: float, factors: Factors, normaliser: Tensor
) -> Completion:
    """Return the control variates, given the log normaliser of q less log noise (b,)."""
    rows, mean, alpha, sigma, _, place = factors
    # In units of sigma, with hazard = mean - mu: the variance is 1 - mean * hazard, and
    # E (z - mu)² - variance, which enters the expected log ratio, is hazard².
    standard_mean = mean / sigma
    hazard = alpha + standard_mean
    variance = standard_mean.mul_(hazard).neg_().add_(1).clamp_(min=0).mul_(sigma).mul_(sigma)
    # The log ratio's part without theta, in expectation, but for ½ variance / sigma² of each cell.
    offset = normaliser + 0.5 * _sum_by_row(block, place, hazard.square_())
    expected = offset - 0.5 * quadratics(augmented, rows)
    slope = (
        -torch.sigmoid(expected - log_nu) if block.is_noise else torch.sigmoid(log_nu - expected)
    )
    # m mᵀ - z zᵀ is the symmetric part of (m - z)(m + z)ᵀ.
    means = rows.unsqueeze(1)
    difference = (means - block.draws).mul_(slope).flatten(1)
    control = difference @ (means + block.draws).flatten(1).mT / block.num_draws
    control = 0.5 * (control + control.mT)
    variances = torch.zeros_like(rows).view(-1).scatter_(0, place.flat, variance).view_as(rows)
    weighted_variances = variances @ slope
    control.diagonal().add_(weighted_variances)
    constant = slope @ (offset - block.log_ratio_offset.mean(dim=0))
    constant = constant + 0.5 * (weighted_variances @ augmented.diagonal())
    return Completion(control, constant, slope, expected)


def log_ratios(block: Block, augmented: Tensor) -> Tensor:
    """Return log phi - log q - log noise (k, b) of the block's draws under `augmented`."""
    quadratic = quadratics(augmented, block.flat_draws).view(block.num_draws, -1)
    return torch.sub(block.log_ratio_offset, quadratic, alpha=0.5)


def _sum_by_row(block: Block, place: Cells, cells: Tensor) -> Tensor:
    """Sum packed cells (..., p) into their rows (..., b)."""
    total = cells.new_zeros(*cells.shape[:-1], block.num_rows)
    return total.index_add_(-1, place.column, cells)

"""The E-step: draws of each row's missing cells from, very nearly, their posterior.

Given its observed cells, the missing cells z of a row have the density exp(-½ zᵀQz + bᵀz) on
z >= 0, up to a constant, with Q = K_mm and b = h_m - K_mo x_o. With the Cholesky factor Q = L Lᵀ,
L y = b and independent standard normal e it is that of a normal variable, Lᵀ z = y + e, cut off at
0. Cells are drawn one after the other from the last on, e_i from a normal truncated to what keeps
z_i >= 0 and tilted towards what the cells still to come will need. The ratio of phi(x, z) to the
density of such a draw is its importance weight: the mean weight of a row estimates phi(x), its
integral over the missing cells, without bias, and the tilt makes it vary by a few per cent, unless
K is nearly singular.

A data row's draws, weighted, stand for its posterior: the log density of one is taken to be
log phi(x, z) - log phi(x). With q the posterior, J_VNCE and its gradient are those of J_NCE at the
theta of the E-step (Rhodes and Gutmann, 2019, Theorem 1 and its corollary on EM). A product of
independent factors for q flattens interactions instead, whatever the number of rows. In a noise
row q is a proposal for an integral, whose weight is right for any q; it has one draw.

Source: Botev (2017), "The normal law under linear restrictions: simulation and estimation via
minimax tilting", J. R. Stat. Soc. B 79, on the sampler of Geweke, Hajivassiliou and Keane.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from vnce_engine.contrastive.row_blocks import BLOCK_WIDTH, Block
from vnce_engine.distributions import truncated_normal
from vnce_engine.optim.symmetric_products import quadratics

# A first tilt that moves a cell's mean by more than this, in units of its spread before truncation,
# goes too far: with all of ten columns' K_ij half of K_ii, weights vary by a third, and by a tenth
# at the saddle point. Where tilts are smaller the saddle point is worth no more.
_FAR = 0.5
# Newton's method ends after a step as short as this in every mean, as the next is far shorter, or
# after so many.
_NEAR = 0.3
_MAX_STEPS = 12


class _Conditional(NamedTuple):
    """The normal distribution of missing cells before truncation, in the module's letters."""

    columns: Tensor
    """int64 (m, 1, o)"""
    is_cell: Tensor
    """bool (m, 1, o): False where an owner has fewer missing cells."""
    factor: Tensor
    """L (m, m, o), of the identity where there is no cell."""
    root: Tensor
    """y (m, c, o), 0 where there is no cell; c is 1 where all rows of an owner share it."""
    log_integral: Tensor
    """(c, o): log of the integral of phi(x, z) over all z in R^m."""


class _Proposals(NamedTuple):
    """Draws z with their log weight, log phi(x, z) - log q(z), less `log_integral`."""

    cells: Tensor
    """z (m, c, o)"""
    log_weight: Tensor
    """(c, o)"""


def complete(block: Block, augmented: Tensor) -> None:
    """Draw the block's missing cells under `augmented`, K positive definite; see `Block`.

    NaN comes out where K is not.
    """
    if block.is_complete:
        return
    conditional = _conditional(block, augmented)
    proposals = _propose(conditional, block.uniforms)
    block.fill(conditional.columns, proposals.cells)
    log_phi = conditional.log_integral + proposals.log_weight
    if block.is_noise:
        log_phi = log_phi.reshape(1, -1)
    else:
        block.draw_weight.copy_(proposals.log_weight.softmax(dim=0))
        log_phi = log_phi.logsumexp(dim=0) - math.log(block.num_draws)
    # Minus log q - log noise of draws of which each has the log ratio log phi - log noise.
    quadratic = quadratics(augmented, block.flat_draws).view(block.num_draws, -1)
    block.log_ratio_offset.copy_(log_phi - block.log_noise + 0.5 * quadratic)


def expected_rows(block: Block, augmented: Tensor) -> Tensor:
    """Return (d + 1, b): a noise block's rows, about the posterior mean in missing cells' place."""
    if block.is_complete:
        return block.draws[:, 0]
    draws = block.draws.clone()
    conditional = _conditional(block, augmented)
    block.fill(conditional.columns, _tilt(conditional)[1])
    rows = block.draws[:, 0].clone()
    block.draws.copy_(draws)
    return rows


def _conditional(block: Block, augmented: Tensor) -> _Conditional:
    num_columns = len(augmented) - 1
    columns = block.missing.long()
    is_cell = columns < num_columns
    selected = augmented.clone()
    selected[-1] = selected[:, -1] = 0.0
    precision = selected[columns.unsqueeze(1), columns.unsqueeze(0)]
    precision.diagonal().add_((~is_cell).to(precision.dtype).mT)
    factor = torch.linalg.cholesky_ex(precision.movedim(-1, 0)).L
    columns, is_cell = columns.unsqueeze(1), is_cell.unsqueeze(1)
    # With zeros in the missing cells' place A times a row is minus their pull.
    block.fill(columns, 0.0)
    rows = block.by_owner if block.is_noise else block.by_owner[:, :1]
    product = (augmented @ rows.flatten(1)).view_as(rows)
    at_zero = product.mul(rows).sum(dim=0)
    own = product.gather(0, columns.expand(-1, rows.shape[1], -1))
    pull = torch.where(is_cell, -own, 0.0)
    root = torch.linalg.solve_triangular(factor, pull.movedim(-1, 0), upper=False)  # (o, m, c)
    log_determinant = factor.diagonal(dim1=1, dim2=2).log().sum(dim=1)
    num_cells = is_cell.sum(dim=0).to(at_zero.dtype)
    log_integral = (
        0.5 * (root.square().sum(dim=1).mT - at_zero)
        + 0.5 * math.log(2 * math.pi) * num_cells
        - log_determinant
    )
    return _Conditional(
        columns,
        is_cell,
        factor.movedim(0, -1).contiguous(),
        root.movedim(0, -1).contiguous(),
        log_integral,
    )


def _propose(conditional: _Conditional, uniforms: Tensor) -> _Proposals:
    """Return draws at `uniforms` (m, c, o)."""
    factor = conditional.factor
    tilt, _ = _tilt(conditional)
    cells = torch.empty_like(uniforms)
    log_weight = uniforms.new_zeros(uniforms.shape[1:])
    # y less what the cells drawn so far take of it: in the end the mean of L_ii z_i.
    means = conditional.root.expand_as(uniforms).clone()
    for i in reversed(range(len(cells))):
        drawn, log_mass = truncated_normal.fast_draws(means[i] + tilt[i], uniforms[i])
        torch.div(drawn, factor[i, i], out=cells[i])
        # Of N(mean, 1) to N(mean + tilt, 1), truncated.
        log_ratio = tilt[i] * (means[i] - drawn + 0.5 * tilt[i]) + log_mass
        log_weight += torch.where(conditional.is_cell[i], log_ratio, 0.0)
        if i:
            means[:i] -= factor[i, :i].unsqueeze(1) * cells[i]
    return _Proposals(cells, log_weight)


def _tilt(conditional: _Conditional) -> tuple[Tensor, Tensor]:
    """Return what is added to each mean (m, c, o), that cells drawn early heed those drawn late.

    And about the mean of each cell before that, each given those of the cells drawn before it.

    It is one step from no tilt towards the saddle point of the log weight, where each e_i is at the
    mean of its truncated normal, tilt_i + hazard, and tilt_i = -sum_{j < i} L_ij e_j / L_ii. Where
    that step would move a cell far it goes too far, and the saddle point itself is found.
    """
    factor, means = conditional.factor, conditional.root.clone()
    hazard, cells = torch.empty_like(means), torch.empty_like(means)
    for i in reversed(range(len(means))):
        hazard[i] = truncated_normal.hazard(-means[i])
        cells[i] = (means[i] + hazard[i]) / factor[i, i]
        if i:
            means[:i] -= factor[i, :i].unsqueeze(1) * cells[i]
    tilt = torch.zeros_like(hazard)
    for i in range(1, len(tilt)):
        tilt[i] = -(factor[i, :i].unsqueeze(1) * hazard[:i]).sum(dim=0) / factor[i, i]
    variance = 1 - hazard * (means + hazard)
    copies, owners = (tilt.abs() * variance > _FAR).any(dim=0).nonzero(as_tuple=True)
    width = max(1, BLOCK_WIDTH // len(tilt))
    for c, o in zip(copies.split(width), owners.split(width), strict=True):
        saddle = _saddle_tilt(factor[:, :, o], conditional.root[:, c, o], means[:, c, o])
        tilt[:, c, o] = torch.where(saddle.isnan(), tilt[:, c, o], saddle)
    return tilt, cells


def _saddle_tilt(factor: Tensor, root: Tensor, means: Tensor) -> Tensor:
    """Return the tilt (m, r) at the saddle point of r rows; NaN where Newton's method ends nowhere.

    With s the tilted means, M(s) = s + hazard(s) and D the diagonal of L, the equations of `_tilt`
    come to Q z - b = D hazard(s) at D z = M(s). A concave function of z has its only maximum there,
    as the hazard falls in s and M rises. From the `means` (m, r) of no tilt three steps do mostly.
    """
    factor = factor.movedim(-1, 0).contiguous()  # (r, m, m)
    root, means = root.mT.contiguous(), means.mT.clone()  # (r, m)
    diagonal = factor.diagonal(dim1=1, dim2=2)
    precision = factor @ factor.mT
    pull = (factor * root.unsqueeze(1)).sum(dim=2)
    one = torch.ones_like(means)
    is_near = means.new_zeros(len(means), 1, dtype=torch.bool)
    for _ in range(_MAX_STEPS):
        truncated, variance = truncated_normal.moments(means, one)
        hazard = truncated - means
        residual = (precision * (truncated / diagonal).unsqueeze(1)).sum(dim=2)
        residual -= pull + diagonal * hazard
        jacobian = precision * (variance / diagonal).unsqueeze(1)
        jacobian.diagonal(dim1=1, dim2=2).add_(diagonal * hazard * truncated)
        step: Tensor = torch.linalg.solve_ex(jacobian, residual).result
        means -= torch.where(is_near, 0.0, step)
        is_near |= step.abs().amax(dim=1, keepdim=True) < _NEAR
        if is_near.all():
            break
    truncated = truncated_normal.moments(means, one)[0]
    noise = (factor * (truncated / diagonal).unsqueeze(2)).sum(dim=1) - root
    tilt = noise - (truncated - means)
    return torch.where(is_near, tilt, torch.nan).mT

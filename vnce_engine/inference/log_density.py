"""Log densities of rows under a fitted truncated Gaussian, their missing cells integrated out.

With phi_K(x) = exp(-½ xᵀKx + hᵀx), the density of a row's observed cells is the integral of phi_K
over its missing ones, divided by that over all cells. The mean weight of draws of the missing cells
(`contrastive/posterior.py`) estimates the first without bias, and exactly where one is missing; the
second is the integral of a row with nothing observed. Dividing by it and not by exp(c) makes the
density integrate to 1 whatever the error of c, which a fit has chosen and which all rows share.
"""

import torch
from torch import Tensor

from vnce_engine.contrastive.row_blocks import Block
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.distributions.uniforms import open_uniforms
from vnce_engine.inference.drawn_blocks import drawn_blocks, same_for_every_row

_NUM_DRAWS = 256
# Of a row with nothing observed, whose error is one of all rows.
_NUM_NORMALISING_DRAWS = 16_384


def log_densities(
    model: QuadraticModel, observations: Observations, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return the log density (n,) of the observed cells of each row, and its Monte-Carlo error.

    K of `model` is positive definite; its c plays no part. The error (n,) is the standard error of
    the logarithm over draws, in which the integral over all cells has its share. A row with nothing
    observed has the log density 0, without error.
    """
    log_integral, error = log_normaliser(model, generator)
    scale, augmented = _scaled(model)
    unnormalised = QuadraticModel.from_augmented(augmented)
    log_phi = unnormalised.log_phi(observations.values / scale)
    errors = torch.zeros_like(log_phi)
    uniforms = same_for_every_row(open_uniforms((_NUM_DRAWS, observations.num_columns), generator))
    # Of the missing cells, over whose scaled values phi is integrated.
    log_units = (~observations.observed).to(scale.dtype) @ scale.log()
    for rows, block in drawn_blocks(augmented, observations, scale, uniforms):
        log_phi[rows], errors[rows] = _log_integrals(block, augmented)
    is_empty = ~observations.observed.any(dim=1)
    log_density = torch.where(is_empty, 0.0, log_phi + log_units - log_integral)
    return log_density, torch.where(is_empty, 0.0, torch.hypot(errors, error))


def log_normaliser(model: QuadraticModel, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return the log of the integral of exp(-½ xᵀKx + hᵀx) over x >= 0, and its standard error.

    It is what c estimates.
    """
    scale, augmented = _scaled(model)
    uniforms = same_for_every_row(open_uniforms((_NUM_NORMALISING_DRAWS, len(scale)), generator))
    zeros = torch.zeros_like(scale).unsqueeze(0)
    nothing = Observations(zeros, torch.zeros_like(zeros, dtype=torch.bool))
    ((_, block),) = drawn_blocks(augmented, nothing, scale, uniforms)
    log_integral, error = _log_integrals(block, augmented)
    return log_integral[0] + scale.log().sum(), error[0]


def _scaled(model: QuadraticModel) -> tuple[Tensor, Tensor]:
    """Return units (d,) of columns in which K_ii is 1, and A (d + 1, d + 1) in them, c being 0."""
    scale = model.precision.diagonal().rsqrt()
    augmented = model.with_columns_scaled(1 / scale).augmented()
    augmented[-1, -1] = 0.0
    return scale, augmented


def _log_integrals(block: Block, augmented: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log of the integral of phi over missing cells (b,), and its standard error."""
    # The noise being 1, the log ratio of every draw is that of phi(x_o) itself.
    log_integral = block.log_ratios(augmented)[0]
    k = block.num_draws
    relative_variance = (k * block.draw_weight.square().sum(dim=0) - 1).clamp(min=0) / (k - 1)
    return log_integral, relative_variance.sqrt()

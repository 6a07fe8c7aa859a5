"""Tables completed by draws of their missing cells given the observed ones, not by their means.

Several of them differ as far as it is not known what was missing: by the draws, and by the
parameters that each has drawn for itself (`uncertainty.py`). What is estimated from each, pooled by
Rubin's rules, has standard errors that take account of missing cells.

Source: Rubin (1987), "Multiple Imputation for Nonresponse in Surveys"; van Buuren (2018), "Flexible
Imputation of Missing Data", section 3.1, on why parameters have to vary.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.data.observations import Observations
from vnce_engine.data.table_transform import TableTransform
from vnce_engine.distributions.gaussian import GaussianConditional
from vnce_engine.distributions.gaussian_conditional import BLOCK_ROWS
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.distributions.uniforms import open_uniforms
from vnce_engine.inference.drawn_blocks import drawn_blocks

# Weighted draws of a row's missing cells of which one is taken: exact where one cell is missing,
# as weights are then equal, and where there are more right to a few per cent of the weights'
# variance.
_NUM_PROPOSALS = 32

# Returns a completed table (n, d): draws of the missing cells under a model of the columns.
Draw = Callable[[QuadraticModel, Observations, torch.Generator], Tensor]


def completed_tables(
    models: Iterable[QuadraticModel],
    X: NDArray[np.float64],
    transform: TableTransform,
    draw: Draw,
    generator: torch.Generator,
) -> Iterator[NDArray[np.float64]]:
    """Yield a completed X (n, d) for each model of the transformed columns, on X's own scale.

    A row gets the same draws wherever it stands in X. Observed cells stay the same to the last bit;
    draws that lie below the transform's range stand for its least value.
    """
    # Draws go by position: rows are put in an order of their contents.
    order = np.lexsort(X.T)
    observations = Observations.from_array(transform.forward(X[order]))
    rows, columns = (~observations.observed).nonzero(as_tuple=True)
    for model in models:
        cells = draw(model, observations, generator)[rows, columns].numpy()
        filled = np.array(X, dtype=np.float64)
        filled[order[rows.numpy()], columns.numpy()] = transform.inverse(cells, columns.numpy())
        yield filled


def draw_truncated(
    model: QuadraticModel, observations: Observations, generator: torch.Generator
) -> Tensor:
    """Return completed rows (n, d) of a truncated Gaussian whose K is positive definite."""
    num_columns = observations.num_columns
    scale = model.precision.diagonal().rsqrt()
    augmented = model.with_columns_scaled(1 / scale).augmented()
    completed = observations.values.clone()

    def uniforms(num_rows: int) -> Tensor:
        return open_uniforms((_NUM_PROPOSALS, num_rows, num_columns), generator)

    for rows, block in drawn_blocks(augmented, observations, scale, uniforms):
        taken = torch.multinomial(block.draw_weight.mT, 1, generator=generator)
        index = taken.view(1, 1, -1).expand(num_columns, -1, -1)
        completed[rows] = block.draws[:-1].gather(1, index)[:, 0].mT * scale
    return completed


def draw_normal(
    model: QuadraticModel, observations: Observations, generator: torch.Generator
) -> Tensor:
    """Return completed rows (n, d) of a Gaussian on all of R^d, exactly."""
    mean = model.mean()
    # Deviations from the mean keep the digits of tables far from zero.
    deviations = replace(model, linear=torch.zeros_like(mean)).packed()
    conditional = GaussianConditional(len(mean))
    completed = observations.values.clone()
    incomplete = (~observations.observed.all(dim=1)).nonzero().flatten()
    for rows in incomplete.split(BLOCK_ROWS):
        observed = torch.where(observations.observed[rows], completed[rows] - mean, torch.nan)
        uniforms = open_uniforms((1, len(rows), len(mean)), generator)
        completed[rows] = mean + conditional.rsample(deviations, observed, uniforms)[0]
    return completed

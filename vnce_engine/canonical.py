"""An order of rows and columns that does not depend on the order in which they were given.

Draws and folds go by position. Fitted in this order, a table has the same estimate however its rows
and columns are shuffled, and whatever the units and origins of its columns. Columns are sorted by
the shape of what they hold, rows by a weighted sum of their cells; only columns that hold the same
numbers in another order, after shift and scale, keep the order they came in.
"""

import torch
from torch import Tensor

from vnce_engine.observations import Observations

# Weights of the first three moments of a column within its range, none of which says all.
_MOMENT_WEIGHTS = (1.0, 0.7548776662466927, 0.5698402909980532)
# The golden ratio's multiples, less their whole parts, are far from one another and from sums of
# few of one another.
_GOLDEN_RATIO = 0.6180339887498949
# What a missing cell counts as, cells being from 0 to 1.
_MISSING = -0.3819660112501051


def canonical_order(observations: Observations) -> tuple[Tensor, Tensor]:
    """Return int64 (n,) and (d,): the rows and columns in an order of their contents."""
    values, observed = observations.values, observations.observed
    lowest = torch.where(observed, values, torch.inf).min(dim=0).values
    highest = torch.where(observed, values, -torch.inf).max(dim=0).values
    cells = torch.where(observed, (values - lowest) / (highest - lowest), _MISSING)
    shape = torch.stack([w * (cells**k).mean(dim=0) for k, w in enumerate(_MOMENT_WEIGHTS, 1)])
    columns = torch.argsort(shape.sum(dim=0), stable=True)
    steps = torch.arange(1, len(columns) + 1, dtype=cells.dtype, device=cells.device)
    weights = torch.empty_like(steps)
    weights[columns] = 0.5 + (steps * _GOLDEN_RATIO) % 1
    return torch.argsort(cells @ weights, stable=True), columns

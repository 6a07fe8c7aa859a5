"""An order of rows and columns that does not depend on the order in which they were given.

Draws and folds go by position. Fitted in this order, a table has the same estimate however its rows
and columns are shuffled, and whatever the units and origins of its columns, but for their sign.
Columns are sorted by the shape of what they hold and by what stands beside it, rows by a weighted
sum of their cells, and where they are equal by what is in their cluster.
"""

import torch
from torch import Tensor

from vnce_engine.data.observations import Observations

# Weights of what columns are sorted by: three moments within the range, none of which says all, and
# for columns with the same values in another order the mean product with the rest of a row.
_WEIGHTS = (1.0, 0.7548776662466927, 0.5698402909980532, 0.4301597090019468)
# What a missing cell counts as, cells being from 0 to 1.
_MISSING = -0.3819660112501051


def canonical_order(observations: Observations) -> tuple[Tensor, Tensor]:
    """Return int64 (n,) and (d,): the rows and columns in an order of their contents."""
    values, observed = observations.values, observations.observed
    lowest = torch.where(observed, values, torch.inf).min(dim=0).values
    highest = torch.where(observed, values, -torch.inf).max(dim=0).values
    cells = torch.where(observed, (values - lowest) / (highest - lowest), _MISSING)
    # Sums are taken of sorted numbers, as rounding depends on their order.
    of_row = cells.square().sort(dim=1).values.sum(dim=1, keepdim=True)
    shapes = (*(cells**power for power in (1, 2, 3)), cells * of_row)
    means = [shape.sort(dim=0).values.mean(dim=0) for shape in shapes]
    keys = sum(weight * mean for weight, mean in zip(_WEIGHTS, means, strict=True))
    columns = torch.argsort(torch.as_tensor(keys), stable=True)
    # Rows of few levels have other sums if their cells are others, as numbers drawn at random are
    # no sums of few of one another.
    generator = torch.Generator().manual_seed(0)
    weights = 0.5 + torch.rand(len(columns), generator=generator, dtype=cells.dtype)
    sums = (cells[:, columns] * weights.to(cells.device)).sum(dim=1)
    order = torch.argsort(sums, stable=True)
    if observations.clusters is not None:
        # Of sorted numbers, too; and of their sines, as sums of few levels are often alike.
        own = observations.clusters[order]
        totals = sums.new_zeros(int(own.max()) + 1).index_add(0, own, sums[order].sin())
        # Clusters that are equal have one order in all their rows.
        place = torch.argsort(torch.argsort(totals, stable=True))
        by_cluster = torch.argsort(place[observations.clusters], stable=True)
        order = by_cluster[torch.argsort(sums[by_cluster], stable=True)]
    return order, columns

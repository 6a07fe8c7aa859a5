"""The mean-field approximation of missing cells: a product of univariate truncated normals.

For a truncated Gaussian model the best factor of one missing cell, the others' means m given, is
the truncated normal with sigma² = 1 / K_ii and mu = (h_i - sum_{j != i} K_ij m_j) / K_ii. A sweep
sets each factor in turn, which raises the evidence lower bound. Its means serve to impute cells;
its spreads, which leave out how cells depend on one another, do not serve to estimate K.

An indefinite K may have no integral over a row's missing cells, and sweeps would then carry their
means to infinity. So mu is held at a ceiling, twice the column's largest observed value: the bound
holds for every q, and a proper posterior does not reach there.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from vnce_engine.data.observations import Observations
from vnce_engine.distributions import truncated_normal

# How far beyond the largest observed value of its column a missing cell may be expected.
CEILING_FACTOR = 2.0
# Columns whose factors are set at once, at most.
_GROUP = 24


@dataclass
class IncompleteRows:
    """b rows and the means under q of their missing cells, packed coordinate by coordinate."""

    rows: Tensor
    """(d + 1, b): the rows transposed, anything where a cell is missing; the last line is 1."""
    coordinate: Tensor
    """int64 (p,), ascending: the coordinate of each missing cell."""
    column: Tensor
    """int64 (p,): the row of each missing cell."""
    counts: list[int]
    """Missing cells of each of the d coordinates."""
    cell_mean: Tensor
    """(p,): a sweep starts from it and overwrites it."""
    ceiling: Tensor
    """(d,): q's mu goes no higher, so that no mean runs away."""

    @classmethod
    def of(
        cls, values: Tensor, observed: Tensor, column_mean: Tensor, ceiling: Tensor
    ) -> "IncompleteRows":
        """Return rows `values` (b, d); q's means start at `column_mean` (d,)."""
        coordinate, column = (~observed.mT).nonzero(as_tuple=True)
        return cls(
            rows=torch.nn.functional.pad(values.mT, (0, 0, 0, 1), value=1.0),
            coordinate=coordinate,
            column=column,
            counts=(~observed).sum(dim=0).tolist(),
            cell_mean=column_mean[coordinate],
            ceiling=ceiling,
        )

    @property
    def place(self) -> Tensor:
        """int64 (p,): where the missing cells are in the rows, flattened."""
        return self.coordinate * self.rows.shape[1] + self.column


class Factors(NamedTuple):
    """q: a normal truncated to [0, inf) for each missing cell, independent given the row."""

    mean: Tensor
    """(p,): of the missing cells alone."""
    mu: Tensor
    """(p,): mean of the parent normal."""
    sigma: Tensor
    """(p,): standard deviation of the parent normal."""


def ceiling(observations: Observations) -> Tensor:
    """Return how high q's mu may go in each column (d,)."""
    return CEILING_FACTOR * observations.values.max(dim=0).values


def sweep(table: IncompleteRows, augmented: Tensor, num_sweeps: int) -> Factors:
    """Fit q by `num_sweeps` sweeps, from the means it has; write its means into the table."""
    rows = table.rows.clone()
    rows.view(-1).scatter_(0, table.place, table.cell_mean)
    variance = 1 / augmented.diagonal()
    # A row of this times the others' means is the cell's mu.
    field = -augmented * variance.unsqueeze(1)
    field.diagonal().zero_()
    highest, sigma = table.ceiling[table.coordinate], variance.sqrt()[table.coordinate]
    mu, mean = torch.empty_like(sigma), torch.empty_like(sigma)
    groups = _columns_at_once(augmented[:-1, :-1])
    sizes = [sum(table.counts[columns]) for columns in groups]
    cells_of = torch.arange(len(mu), device=mu.device).split(sizes)
    for _ in range(num_sweeps):
        for columns, cells in zip(groups, cells_of, strict=True):
            place = table.place[cells]
            sums = (field[columns] @ rows).view(-1)
            mu[cells] = sums[place - columns.start * rows.shape[1]].minimum(highest[cells])
            mean[cells] = truncated_normal.fast_mean(mu[cells], sigma[cells])
            rows.view(-1).scatter_(0, place, mean[cells])
    table.cell_mean.copy_(mean)
    return Factors(mean, mu, sigma)


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

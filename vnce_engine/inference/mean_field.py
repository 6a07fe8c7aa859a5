"""The mean-field approximation of missing cells: a product of univariate truncated normals.

For a truncated Gaussian model the best factor of one missing cell, the others' means m given, is
the truncated normal with sigma² = 1 / K_ii and mu = (h_i - sum_{j != i} K_ij m_j) / K_ii. A sweep
sets each factor in turn, which raises the evidence lower bound. Its means serve to impute cells;
its spreads, which leave out how cells depend on one another, do not serve to estimate K.

An indefinite K may have no integral over a row's missing cells, and sweeps would then carry their
means to infinity. So mu is held at a ceiling, twice the column's largest observed value: the bound
holds for every q, and a proper posterior does not reach there.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.special import erfc

from vnce_engine.data.observations import Observations

# Beyond this alpha = -mu / sigma erfc is about to underflow. A mean is taken from three levels of
# its continued fraction there, right to 1e-8.
_TAIL_ALPHA = 30.0
# How far beyond the largest observed value of its column q's mu may go.
_CEILING_FACTOR = 2.0
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
    """(p,): the missing cells' means alone."""
    alpha: Tensor
    """(p,): -mu / sigma."""
    sigma: Tensor
    """(p,): standard deviation of the parent normal."""

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


def ceiling(observations: Observations) -> Tensor:
    """Return how high q's mu may go in each column (d,)."""
    return _CEILING_FACTOR * observations.values.max(dim=0).values


def sweep(table: IncompleteRows, augmented: Tensor, num_sweeps: int) -> Factors:
    """Fit q by `num_sweeps` sweeps, from the means it has; write its means into the table."""
    factors = _swept(table, augmented, num_sweeps, _mean_near)
    if factors.reaches_tail():
        factors = _swept(table, augmented, num_sweeps, _mean_anywhere)
    table.cell_mean.copy_(factors.mean)
    return factors


def _swept(
    table: IncompleteRows, augmented: Tensor, num_sweeps: int, standard_mean: _StandardMean
) -> Factors:
    """Return q after `num_sweeps` sweeps, group by group of columns."""
    place, coordinate = table.place, table.coordinate
    rows = table.rows.clone()
    rows.view(-1).scatter_(0, place, table.cell_mean)
    scaled_alpha, tail, mean = rows.new_empty(3, len(place))
    root = augmented.diagonal().rsqrt()
    # A row of this times the others' means is the cell's alpha / √2.
    field = augmented * (math.sqrt(0.5) * root).unsqueeze(1)
    field.diagonal().zero_()
    lowest = (table.ceiling * (-math.sqrt(0.5) / root[:-1])).index_select(0, coordinate)
    sigma = root.index_select(0, coordinate)
    columns = _columns_at_once(augmented[:-1, :-1])
    sizes = [sum(table.counts[part]) for part in columns]
    parts = (part.split(sizes) for part in (place, lowest, sigma, scaled_alpha, tail, mean))
    groups = [_Group(*group) for group in zip(columns, *parts, strict=True)]
    for _ in range(num_sweeps):
        for group in groups:
            _set_at_once(group, field, rows, standard_mean)
    return Factors(mean, scaled_alpha.mul_(math.sqrt(2)), sigma)


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

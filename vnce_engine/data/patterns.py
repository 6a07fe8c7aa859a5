"""Where a table's missing cells are, rows that miss as many together.

What is done to the missing cells of one row is then done to those of many in one batch of small
matrices, none larger than it has to be.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class AlikeRows(NamedTuple):
    """The rows that miss m cells each."""

    rows: Tensor
    """int64 (r,)"""
    patterns: Tensor
    """int64 (q, m): the missing columns, ascending, of each distinct pattern"""
    pattern: Tensor
    """int64 (r,): which pattern each row has"""


@dataclass(frozen=True)
class MissingnessPatterns:
    """The p missing cells of a mask (n, d), in the order in which `split` cuts vectors of them."""

    observed: Tensor
    """bool (n, d)"""
    groups: tuple[AlikeRows, ...]
    """By m, ascending from 1; no group is empty."""
    incomplete_rows: Tensor
    """int64: the rows of all groups, in their order"""
    row: Tensor
    """int64 (p,)"""
    column: Tensor
    """int64 (p,)"""

    @classmethod
    def of(cls, observed: Tensor) -> "MissingnessPatterns":
        """Read a mask (n, d), True where something was observed."""
        num_missing = (~observed).sum(dim=1)
        none = num_missing[:0]
        groups, incomplete, row, column = [], [none], [none], [none]
        for m in num_missing.unique().tolist():
            if m == 0:
                continue
            rows = (num_missing == m).nonzero()[:, 0]
            masks, pattern = torch.unique(observed[rows], dim=0, return_inverse=True)
            patterns = (~masks).nonzero()[:, 1].reshape(-1, m)
            groups.append(AlikeRows(rows, patterns, pattern))
            incomplete.append(rows)
            row.append(rows.repeat_interleave(m))
            column.append(patterns[pattern].flatten())
        return cls(
            observed, tuple(groups), torch.cat(incomplete), torch.cat(row), torch.cat(column)
        )

    @property
    def num_cells(self) -> int:
        """The number of missing cells, p."""
        return len(self.row)

    def split(self, cells: Tensor) -> Iterator[Tensor]:
        """Cut numbers (p, ...), one or more a missing cell, into (r, m, ...), group by group."""
        first = 0
        for group in self.groups:
            shape = (len(group.rows), group.patterns.shape[1])
            last = first + shape[0] * shape[1]
            yield cells[first:last].unflatten(0, shape)
            first = last

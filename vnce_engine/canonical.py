"""An order of rows and columns that does not depend on the order in which they were given.

Draws and folds go by position. Fitted in this order, a table has the same estimate however its rows
and columns are shuffled. A column's key is a sum over its cells and so knows no order of rows; a
row's is one over its cells and their columns' keys. Equal keys are, but for an accident, equal rows
or columns.
"""

import torch
from torch import Tensor

from vnce_engine.observations import Observations

# Odd multipliers of a mixing function, and the key of a missing cell.
# Source: Steele, Lea and Flood (2014), "Fast splittable pseudorandom number generators".
_FIRST, _SECOND, _STEP = -4658895280553007687, -7723592293110705685, -7046029254386353131
_MISSING = 0x5DEECE66D
# Of a number's 52 digits these are left out: a sum over rows, by which columns may have been scaled
# or filled, depends on their order in the last ones.
_ROUNDED_BITS = 12


def canonical_order(observations: Observations) -> tuple[Tensor, Tensor]:
    """Return int64 (n,) and (d,): the rows and columns in an order of their contents."""
    bits = (observations.values + 0.0).contiguous().view(torch.int64)  # + 0 takes -0 for 0
    rounded = (bits + (1 << (_ROUNDED_BITS - 1))) >> _ROUNDED_BITS
    cells = torch.where(observations.observed, rounded, _MISSING)
    columns = _mixed(_mixed(cells).sum(dim=0))
    rows = _mixed(_mixed(cells ^ columns).sum(dim=1))
    return torch.argsort(rows, stable=True), torch.argsort(columns, stable=True)


def _mixed(key: Tensor) -> Tensor:
    """Return int64 numbers that look random, a one-to-one function of the `key`."""
    key = key + _STEP
    key = (key ^ _shifted(key, 30)) * _FIRST
    key = (key ^ _shifted(key, 27)) * _SECOND
    return key ^ _shifted(key, 31)


def _shifted(key: Tensor, bits: int) -> Tensor:
    """Return the logical right shift of int64 numbers."""
    return (key >> bits) & ((1 << (64 - bits)) - 1)

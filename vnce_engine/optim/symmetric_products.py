"""Products of rows with a symmetric matrix, of which only one half is computed.

Matrices are cut into panels of lines, and each panel is taken from the diagonal on. With 200
columns three fifths of the multiplications are left, and the rest is their mirror image.
"""

from functools import reduce

import torch
from torch import Tensor

# Lines of a panel. Lower ones leave fewer multiplications, but products of few lines are slow; a
# matrix of one panel is not cut at all.
_PANEL = 40


def quadratics(symmetric: Tensor, columns: Tensor) -> Tensor:
    """Return tᵀ A t (b,) of every column t of (d, b), for a symmetric A (d, d)."""
    if len(symmetric) <= _PANEL:
        return (symmetric @ columns).mul_(columns).sum(dim=0)
    parts = []
    for start in range(0, len(symmetric), _PANEL):
        panel = symmetric[start : start + _PANEL, start:].clone()
        panel[:, _PANEL:] *= 2
        own = columns[start : start + _PANEL]
        parts.append((panel @ columns[start:]).mul_(own).sum(dim=0))
    return reduce(Tensor.add_, parts)


class WeightedSquares:
    """The sum of w t tᵀ over columns t with weights w, which may have any sign."""

    def __init__(self, like: Tensor) -> None:
        self._sum = torch.zeros_like(like)

    def add(self, columns: Tensor, weights: Tensor) -> None:
        """Add those of columns (d, b) with weights (b,)."""
        if len(self._sum) <= _PANEL:
            self._sum.addmm_(columns * weights, columns.mT)
            return
        for start in range(0, len(self._sum), _PANEL):
            own = columns[start : start + _PANEL]
            self._sum[start : start + _PANEL, start:].addmm_(own * weights, columns[start:].mT)

    def total(self) -> Tensor:
        """Return the sum (d, d); mirror images of a small one may differ in their last bits."""
        if len(self._sum) <= _PANEL:
            return self._sum
        return self._sum.triu() + self._sum.triu(diagonal=1).mT


def symmetric_part(matrix: Tensor) -> Tensor:
    """Return the symmetric part, without which signs of mirror images may differ by rounding."""
    return 0.5 * (matrix + matrix.mT)


def symmetrised(entries: Tensor) -> Tensor:
    """Return entries with those of their mirror images, which move along; exactly symmetric."""
    return entries + entries.mT - torch.diag(entries.diagonal())

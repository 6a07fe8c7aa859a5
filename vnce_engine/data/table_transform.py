"""The transforms of a table's columns, all alike or one for each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.data.rank_normal import RankNormal
from vnce_engine.data.transforms import Transform
from vnce_engine.distributions.cell_means import CellMeans

FloatArray = NDArray[np.float64]

RANK_NORMAL = "rank-normal"
TRANSFORMS = (*(str(transform) for transform in Transform), RANK_NORMAL)


@dataclass(frozen=True)
class TableTransform:
    """A map of each of d columns; tables are (n, d), NaN where missing."""

    maps: tuple[Transform | RankNormal, ...]

    @classmethod
    def fit(cls, names: Sequence[str], X: FloatArray, *, may_be_negative: bool) -> "TableTransform":
        """Return the transforms of the `names`, d of `TRANSFORMS`, to the observed cells of X.

        "rank-normal" makes a column normal or, where the model's columns may not be negative, half
        of a normal.
        """

        def fitted(name: str, column: FloatArray) -> Transform | RankNormal:
            if name != RANK_NORMAL:
                return Transform(name)
            return RankNormal.fit(column[~np.isnan(column)], is_half=not may_be_negative)

        return cls(tuple(fitted(name, X[:, j]) for j, name in enumerate(names)))

    def forward(self, X: FloatArray) -> FloatArray:
        """Return the transformed table; raise `ValueError` if a value is outside a domain.

        If all are "none" it is `X` itself.
        """
        if all(column is Transform.NONE for column in self.maps):
            return X
        return self._each(lambda column, x: column.forward(x), X)

    def inverse(self, cells: FloatArray, coordinate: NDArray[np.intp]) -> FloatArray:
        """Return transformed cells (p,), of the columns `coordinate` (p,), on X's scale.

        What lies below a map's range stands for its least value, 0.
        """
        values = np.empty_like(cells)
        for j in np.unique(coordinate):
            own, column = coordinate == j, self.maps[j]
            bounded = np.maximum(cells[own], 0) if column.begins_at_zero else cells[own]
            values[own] = column.inverse(bounded)
        return values

    def log_slope(self, X: FloatArray, least: FloatArray | None = None) -> FloatArray:
        """Return the log of each map's slope at the cells of X.

        With `least` (d,), the least positive value of each column, cells of 0, where some maps are
        infinitely steep, count as the values up to half of it: theirs is the mean slope there.
        """
        log_slope = self._each(lambda column, x: column.log_slope(x), X)
        if least is None:
            return log_slope
        step = 0.5 * least[None]
        near_zero = np.log((self.forward(step) - self.forward(0 * step)) / step)
        return np.where(X == 0, near_zero, log_slope)

    def mean_before(self, cells: CellMeans, coordinate: Tensor) -> FloatArray:
        """Return what cells (..., p) are expected to be on X's scale.

        `coordinate`, int64 (p,), has their columns.
        """
        means = np.empty(cells.mu.shape)
        for j in coordinate.unique().tolist():
            own = (coordinate == j).nonzero().flatten()
            means[..., own.numpy()] = self.maps[j].mean_before(cells.at(own))
        return means

    def _each(
        self, function: Callable[[Transform | RankNormal, FloatArray], FloatArray], X: FloatArray
    ) -> FloatArray:
        pairs = zip(self.maps, X.T, strict=True)
        return np.stack([function(column, x) for column, x in pairs], axis=1)


def least_positive(X: FloatArray) -> FloatArray:
    """Return the least positive value (d,) of each column of X (n, d), 1 where there is none."""
    least = np.where(X > 0, X, np.inf).min(axis=0)
    return np.where(np.isinf(least), 1.0, least)

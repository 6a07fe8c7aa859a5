"""Monotone transforms that bring skewed, non-negative columns closer to a truncated normal."""

from enum import StrEnum
from typing import assert_never

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnce_engine.distributions.cell_means import CellMeans


class Transform(StrEnum):
    """A transform of every observed cell; NaN stays NaN.

    Its domain and range are x >= 0; those of "none" are all numbers, and whether a model takes
    negative ones is its estimator's to say.
    """

    NONE = "none"
    SQRT = "sqrt"
    CBRT = "cbrt"
    LOG1P = "log1p"

    @property
    def begins_at_zero(self) -> bool:
        """Whether its range is [0, inf) and not all numbers."""
        return self is not Transform.NONE

    def forward(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the transformed values; raise `ValueError` if one is outside the domain.

        "none" may return `x` itself.
        """
        x = self._values(x)
        match self:
            case Transform.NONE:
                return x
            case Transform.SQRT:
                return np.sqrt(x)
            case Transform.CBRT:
                return np.cbrt(x)
            case Transform.LOG1P:
                return np.log1p(x)
            case _:
                assert_never(self)

    def inverse(self, y: ArrayLike) -> NDArray[np.float64]:
        """Return the values on the original scale; raise `ValueError` if one is out of range.

        "none" may return `y` itself.
        """
        y = self._values(y)
        match self:
            case Transform.NONE:
                return y
            case Transform.SQRT:
                return y**2
            case Transform.CBRT:
                return y**3
            case Transform.LOG1P:
                return np.expm1(y)
            case _:
                assert_never(self)

    def log_slope(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the log of the derivative of `forward` at x; NaN stays NaN.

        Infinite at 0 for "sqrt" and "cbrt".
        """
        x = self._values(x)
        with np.errstate(divide="ignore"):
            match self:
                case Transform.NONE:
                    return np.where(np.isnan(x), x, 0.0)
                case Transform.SQRT:
                    return np.log(0.5 / np.sqrt(x))
                case Transform.CBRT:
                    return np.log(1 / 3 / np.cbrt(x) ** 2)
                case Transform.LOG1P:
                    return -np.log1p(x)
                case _:
                    assert_never(self)

    def mean_before(self, cells: CellMeans) -> NDArray[np.float64]:
        """Return the mean of the inverse of each cell: what it is expected to be on X's scale."""
        match self:
            case Transform.NONE:
                means = cells.mean()
            case Transform.SQRT:
                means = cells.power(2)
            case Transform.CBRT:
                means = cells.power(3)
            case Transform.LOG1P:
                means = cells.expm1()
            case _:
                assert_never(self)
        return means.numpy()

    def _values(self, x: ArrayLike) -> NDArray[np.float64]:
        values = np.asarray(x, dtype=np.float64)
        negative = values < 0
        if self is not Transform.NONE and negative.any():
            smallest = values[negative].min()
            raise ValueError(f"The transform '{self}' needs values of at least 0, got {smallest}")
        return values

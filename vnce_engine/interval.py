"""A normal variable known to lie in an interval, such as a reading below a detection limit."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from vnce_engine import interval_normal

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class IntervalNormal:
    """Normals with parents N(mu, sigma²), each given that it lies in [lower, upper].

    The four parameters broadcast together; every answer has their common shape. Bounds may be
    infinite, and the interval may lie any number of `sigma` away from `mu`:
    `IntervalNormal(mu, sigma, 0, 0.5)` is what a cell `<0.5` of a non-negative column may have
    been. Methods raise `ValueError` unless `sigma` is positive and finite, `mu` finite and
    `lower` < `upper`.
    """

    mu: ArrayLike
    sigma: ArrayLike
    lower: ArrayLike = -math.inf
    upper: ArrayLike = math.inf

    def log_mass(self) -> FloatArray:
        """Return the log probability that the parent lies in the interval."""
        return _array(interval_normal.log_mass(*self._tensors()))

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance."""
        mean, variance = interval_normal.moments(*self._tensors())
        return _array(mean), _array(variance)

    def log_density(self, x: ArrayLike) -> FloatArray:
        """Return the log density at `x`, which broadcasts with the parameters; -inf outside."""
        return _array(interval_normal.log_prob(_tensor(x), *self._tensors()))

    def sample(self, num_draws: int, rng: np.random.Generator) -> FloatArray:
        """Return independent draws (num_draws, ...), all of them inside the interval."""
        parameters = self._tensors()
        shape = torch.broadcast_shapes(*(parameter.shape for parameter in parameters))
        # The quantile function wants both ends left out.
        uniforms = (1 - rng.random((num_draws, *shape))).clip(max=np.nextafter(1, 0))
        return _array(interval_normal.quantile(_tensor(uniforms), *parameters))

    def _tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        for name, value in (("mu", self.mu), ("sigma", self.sigma)):
            if not np.isfinite(np.asarray(value, dtype=np.float64)).all():
                raise ValueError(f"`{name}` must be finite, got {value!r}")
        return _tensor(self.mu), _tensor(self.sigma), _tensor(self.lower), _tensor(self.upper)


def _tensor(value: ArrayLike) -> Tensor:
    return torch.from_numpy(np.array(value, dtype=np.float64))


def _array(value: Tensor) -> FloatArray:
    array: FloatArray = value.numpy()
    return array

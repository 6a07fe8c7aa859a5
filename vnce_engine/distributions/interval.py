"""A normal variable known to lie in an interval, such as a reading below a detection limit."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from vnce_engine.distributions import interval_normal
from vnce_engine.runtime.checks import as_array, check_count, shown

FloatArray = NDArray[np.float64]

# More would not fit into memory.
_MOST_DRAWS = 1_000_000_000


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
        return _array(interval_normal.log_prob(_tensor("x", x), *self._tensors()))

    def sample(self, num_draws: int, rng: np.random.Generator) -> FloatArray:
        """Return independent draws (num_draws, ...), all of them inside the interval."""
        check_count("num_draws", num_draws, least=0, most=_MOST_DRAWS)
        parameters = self._tensors()
        shape = torch.broadcast_shapes(*(parameter.shape for parameter in parameters))
        # The quantile function wants both ends left out.
        uniforms = (1 - rng.random((num_draws, *shape))).clip(max=np.nextafter(1, 0))
        return _array(interval_normal.quantile(_tensor("uniforms", uniforms), *parameters))

    def _tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        for name, value in (("mu", self.mu), ("sigma", self.sigma)):
            if not np.isfinite(as_array(name, value)).all():
                raise ValueError(f"`{name}` must be finite, got {shown(value)}")
        mu, sigma = _tensor("mu", self.mu), _tensor("sigma", self.sigma)
        return mu, sigma, _tensor("lower", self.lower), _tensor("upper", self.upper)


def _tensor(name: str, value: ArrayLike) -> Tensor:
    return torch.from_numpy(as_array(name, value))


def _array(value: Tensor) -> FloatArray:
    array: FloatArray = value.numpy()
    return array

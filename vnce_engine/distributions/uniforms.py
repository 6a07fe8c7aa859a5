"""Uniforms strictly between 0 and 1, which quantile functions map to draws: random or even."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine


def open_uniforms(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Return independent uniforms, float64."""
    return torch.rand(shape, dtype=torch.float64, generator=generator).clamp(min=2.0**-54)


def sobol_stream(d: int, seed: int) -> Callable[[int], Tensor]:
    """Return a function of n that gives the next n points of a scrambled Sobol sequence.

    Points are (n, d), float64, in (0, 1)^d; d is at most 21201. n need not be a power of two:
    points are a prefix of the sequence, still evenly spread but no longer exactly balanced.
    """
    engine = SobolEngine(d, scramble=True, seed=seed)

    def draw(n: int) -> Tensor:
        points: Tensor = engine.draw(n, dtype=torch.float64)
        # Coordinates are multiples of 2^-MAXBIT from 0 on; the middle of each step is never 0.
        return points + 2.0 ** -(SobolEngine.MAXBIT + 1)

    return draw

"""A histogram of the values with the fitted mixture and its two components."""

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from worker.artefacts.figures.drawing import (
    FAINT,
    INK,
    NEGATIVE,
    POSITIVE,
    add_legend,
    add_title,
    label,
)

FloatArray = NDArray[np.float64]

_SIZE_INCHES = (4.8, 2.8)
_NUM_BINS, _NUM_POINTS = 60, 401
# Share of the values on either side that may lie outside the picture: one outlier would flatten it.
_OUTSIDE = 0.002
# Height of the picture over that of the histogram, at most.
_TALLEST = 2.0


def draw_mixture(
    figure: Figure,
    x: FloatArray,
    theta: float,
    sigma_1: float,
    known_weight: float,
    name: str,
    about: str,
) -> None:
    """Draw the values x (n,) of column `name` and the density that was fitted to them."""
    figure.set_size_inches(*_SIZE_INCHES)
    axes = figure.add_axes((0, 0, 1, 1))
    sizes = np.abs(x)
    reach = float(np.quantile(sizes, 1 - 2 * _OUTSIDE)) or float(sizes.max())
    bins = np.linspace(-reach, reach, _NUM_BINS + 1)
    # Of all values, also those outside.
    heights = np.histogram(x, bins)[0] / (len(x) * np.diff(bins))
    axes.stairs(heights, bins, fill=True, color=FAINT, label="values")
    grid = np.linspace(-reach, reach, _NUM_POINTS)
    known = known_weight * _normal(grid, sigma_1)
    free = (1 - known_weight) * _normal(grid, theta)
    axes.plot(grid, known + free, color=INK, linewidth=1.6, label="mixture")
    axes.plot(grid, known, color=POSITIVE, linewidth=1.2, label=f"σ₁ = {sigma_1:.4g}, known")
    axes.plot(grid, free, color=NEGATIVE, linewidth=1.2, label=f"θ = {theta:.4g}, estimated")
    # A component that has shrunk to nothing is a needle, and would flatten everything else.
    top = max(heights.max(), min((known + free).max(), _TALLEST * heights.max()))
    axes.set(xlabel=label(name), ylabel="density", ylim=(0, 1.05 * top))
    add_legend(figure, axes.get_legend_handles_labels()[0])
    add_title(figure, f"Mixture: {about}", "Each component by its share of the density")


def _normal(x: FloatArray, sigma: float) -> FloatArray:
    with np.errstate(over="ignore"):  # far out the density is 0
        density: FloatArray = np.exp(-0.5 * (x / sigma) ** 2) / (np.sqrt(2 * np.pi) * sigma)
    return density

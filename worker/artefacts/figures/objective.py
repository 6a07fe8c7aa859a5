"""The objective at every iteration of the final fit."""

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from worker.artefacts.figures.drawing import SERIES, add_title

_SIZE_INCHES = (4.8, 2.8)


def draw_objective(
    figure: Figure,
    objective: Sequence[float],
    title: str,
    subtitle: str,
    name: str = "objective per row",
    starts: Sequence[int] = (),
) -> None:
    """Draw the objective against the iteration, counted from 1.

    The line is broken before each position among `starts`, from which it is another objective.
    """
    figure.set_size_inches(*_SIZE_INCHES)
    axes = figure.add_axes((0, 0, 1, 1))
    for start, end in pairwise([0, *starts, len(objective)]):
        iterations = range(start + 1, end + 1)
        part = objective[start:end]
        axes.plot(iterations, part, color=SERIES[0], linewidth=1.5, marker="o", markersize=3.5)
    axes.set(xlabel="iteration", ylabel=name)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.grid(axis="y", linewidth=0.4, alpha=0.5)
    add_title(figure, title, subtitle)

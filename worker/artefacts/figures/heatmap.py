"""The matrix of scaled interactions, or partial correlations, as a heat map."""

from collections.abc import Sequence
from math import ceil

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from worker.artefacts.figures.drawing import FAINT, INK, add_title, label

# Blue and red differ for every common kind of colour vision; white is no association.
_COLOURS = "RdBu"
_CELL_INCHES = 0.42
_SMALL_CELL_INCHES = 0.17
# Up to here every cell is large enough to hold its number.
_MAX_NUMBERED = 16
_MAX_SIDE_INCHES = 14.0
# What a line of text needs; where cells are narrower, not all are named.
_NAME_INCHES = 0.135
# Lines between narrower cells would cover their colours.
_MIN_RULED_CELL_INCHES = 0.1
# From here on the colour is dark enough to need white ink.
_DARK = 0.6


def draw_heatmap(
    figure: Figure,
    names: Sequence[str],
    interaction: NDArray[np.float64],
    *,
    title: str,
    measure: str,
) -> None:
    """Draw the matrix (d, d) in the order of `names`, the diagonal left out.

    `measure` is what the figure calls its numbers.
    Colours run symmetrically from minus to plus the largest size off the diagonal, rounded up to
    a tenth, so that zero is always white. Of very many variables every second or further one is
    named, and the subtitle says which.
    """
    d = len(names)
    cell = _CELL_INCHES if d <= _MAX_NUMBERED else _SMALL_CELL_INCHES
    side = min(_MAX_SIDE_INCHES, max(2.0, d * cell))
    figure.set_size_inches(side, side)
    axes = figure.add_axes((0, 0, 1, 1))
    shown = np.ma.masked_array(interaction, mask=np.eye(d, dtype=bool))
    limit = max(0.1, float(np.ceil(np.abs(shown).max() * 10 - 1e-9) / 10))
    image = axes.imshow(
        shown,
        cmap=colormaps[_COLOURS],
        vmin=-limit,
        vmax=limit,
        aspect="equal",
        interpolation="nearest",  # sharp cells in every viewer
    )
    axes.set_facecolor(FAINT)
    step = ceil(d * _NAME_INCHES / side)
    _name_rows_and_columns(axes, names, step)
    if side / d >= _MIN_RULED_CELL_INCHES:
        _rule_cells(axes, d)
    if d <= _MAX_NUMBERED:
        _write_numbers(axes, interaction, limit)
    height = max(1.6, side * 0.6)
    colour_axes = figure.add_axes((1 + 0.2 / side, 0, 0.14 / side, height / side))
    figure.colorbar(image, cax=colour_axes, label=measure)
    notes = ["white is no association given all other variables"]
    if step > 1:
        notes.append(f"one variable in {step} is named, from the first of {d}")
    add_title(figure, title, "\n".join(notes))


def _name_rows_and_columns(axes: Axes, names: Sequence[str], step: int) -> None:
    """Name every `step`-th row and column."""
    labels = [label(name) for name in names[::step]]
    ticks = np.arange(0, len(names), step)
    axes.set_yticks(ticks, labels)
    # Anchored where they meet the cells, so that a viewer's wider glyphs grow away from them.
    axes.set_xticks(ticks, labels, rotation=90, rotation_mode="anchor", ha="right", va="center")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _rule_cells(axes: Axes, num_variables: int) -> None:
    """Draw white lines between the cells."""
    between = np.arange(1, num_variables) - 0.5
    axes.set_xticks(between, minor=True)
    axes.set_yticks(between, minor=True)
    axes.grid(which="minor", color="white", linewidth=0.8)
    axes.tick_params(which="minor", length=0)


def _write_numbers(axes: Axes, matrix: NDArray[np.float64], limit: float) -> None:
    for i, row in enumerate(matrix):
        for j, value in enumerate(row):
            if i != j:
                ink = "white" if abs(value) > _DARK * limit else INK
                text = f"{value:.2f}".replace("-", "−").replace("−0.00", "0.00")
                axes.text(j, i, text, ha="center", va="center", color=ink, fontsize=7.5)

"""The matrix of scaled interactions, or partial correlations, as a heat map."""

from collections.abc import Sequence
from math import ceil, floor, log10

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from worker.artefacts.figures.drawing import (
    FAINT,
    INK,
    NEGATIVE,
    POINTS_PER_INCH,
    POSITIVE,
    add_title,
    label,
)

# Those of the network's lines; white is no association. An odd number has zero as its middle.
_COLOURS = LinearSegmentedColormap.from_list("sign", (NEGATIVE, "white", POSITIVE), N=257)
_CELL_INCHES = 0.42
_SMALL_CELL_INCHES = 0.17
# Up to here every cell is large enough to hold its number, and the order is that of the table.
_MAX_NUMBERED = 16
_MAX_SIDE_INCHES = 14.0
# What a line of text needs; where cells are narrower, not all are named.
_NAME_INCHES = 0.135
# Lines between narrower cells would cover their colours.
_MIN_RULED_CELL_INCHES = 0.1
# From here on the colour is dark enough to need white ink.
_DARK = 0.85
# The share of pairs that may be beyond the colours' ends: a few strong ones would pale the rest.
_BEYOND = 0.01
# How wide a dot is in its cell.
_DOT_SHARE = 0.35
_LIMIT_OF_ZEROS = 0.1


def draw_heatmap(
    figure: Figure,
    names: Sequence[str],
    interaction: NDArray[np.float64],
    selected: NDArray[np.bool_],
    *,
    title: str,
    measure: str,
) -> None:
    """Draw the matrix (d, d), the diagonal left out.

    Pairs that are `selected` (d, d) have a dot, or a bold number. `measure` is what the figure
    calls its numbers. Up to 16 variables stand in the order of
    `names`, more in that of a hierarchical clustering, so that those that go together are
    neighbours. Zero is always white and the colours end at the size that one pair in a hundred
    exceeds; up to 16 variables, at the largest. Of very many variables every second or further one
    is named. The subtitle says all of it.
    """
    d = len(names)
    is_large = d > _MAX_NUMBERED
    cell = _SMALL_CELL_INCHES if is_large else _CELL_INCHES
    side = min(_MAX_SIDE_INCHES, max(2.0, d * cell))
    figure.set_size_inches(side, side)
    axes = figure.add_axes((0, 0, 1, 1))
    order = _clustered(interaction) if is_large else np.arange(d)
    shown = np.ma.masked_array(interaction[np.ix_(order, order)], mask=np.eye(d, dtype=bool))
    limit = _limit(np.abs(interaction[np.triu_indices(d, 1)]), _BEYOND if is_large else 0)
    image = axes.imshow(
        shown,
        cmap=_COLOURS,
        vmin=-limit,
        vmax=limit,
        aspect="equal",
        interpolation="nearest",  # sharp cells in every viewer
    )
    axes.set_facecolor(FAINT)
    step = ceil(d * _NAME_INCHES / side)
    _name_rows_and_columns(axes, [names[place] for place in order], step)
    if side / d >= _MIN_RULED_CELL_INCHES:
        _rule_cells(axes, d)
    if not is_large:
        _write_numbers(axes, interaction, selected, limit)
    else:
        rows, columns = np.nonzero(selected[np.ix_(order, order)])
        area = (_DOT_SHARE * side / d * POINTS_PER_INCH) ** 2
        axes.scatter(columns, rows, s=area, color=INK, linewidths=0)
    height = max(1.6, side * 0.6)
    colour_axes = figure.add_axes((1 + 0.2 / side, 0, 0.14 / side, height / side))
    is_beyond = bool(np.abs(shown).max() > limit)
    extend = "both" if is_beyond else "neither"
    figure.colorbar(image, cax=colour_axes, label=measure, extend=extend)
    notes = ["blue is positive, orange negative, white no association given all other variables"]
    if selected.any():
        notes.append(f"{'a dot' if is_large else 'a bold number'}: the pair is selected")
    if is_beyond:
        notes.append(f"sizes from {limit:g} to {np.abs(shown).max():.2g} have one colour")
    if is_large:
        notes.append("ordered by hierarchical clustering (average linkage of 1 − size)")
    if step > 1:
        notes.append(f"one variable in {step} is named, from the first of {d}")
    add_title(figure, title, "\n".join(notes))


def _limit(sizes: NDArray[np.float64], beyond: float) -> float:
    """Return where the colours end: the quantile of `sizes`, rounded up to a leading digit."""
    quantile = float(np.quantile(sizes, 1 - beyond)) or float(sizes.max()) or _LIMIT_OF_ZEROS
    unit = 10.0 ** floor(log10(quantile))
    # Not beyond what the rounding of a decimal number adds.
    return float(f"{ceil(quantile / unit - 1e-9) * unit:.1g}")


def _clustered(interaction: NDArray[np.float64]) -> NDArray[np.int_]:
    """Return an order (d,) in which variables with large interactions are near each other."""
    # An interaction of an indefinite matrix can exceed 1.
    distance = 1 - np.minimum(np.abs(interaction), 1)
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    order: NDArray[np.int_] = leaves_list(tree)
    return order


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


def _write_numbers(
    axes: Axes, matrix: NDArray[np.float64], selected: NDArray[np.bool_], limit: float
) -> None:
    for i, row in enumerate(matrix):
        for j, value in enumerate(row):
            if i != j:
                ink = "white" if abs(value) > _DARK * limit else INK
                text = f"{value:.2f}".replace("-", "−").replace("−0.00", "0.00")
                weight = "bold" if selected[i, j] else "normal"
                axes.text(
                    j, i, text, ha="center", va="center", color=ink, fontsize=7.5, weight=weight
                )

"""The estimated network: variables on a circle, selected pairs joined."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from service.results.edges import Edge
from worker.figures.drawing import (
    INK,
    NEGATIVE,
    PALE,
    POSITIVE,
    QUIET,
    add_legend,
    add_title,
    label,
    render,
)
from worker.truth import Pair, pair

Point = NDArray[np.float64]

_LABEL_GAP_INCHES = 0.13
# Room for one line of text between neighbours on the circle.
_ARC_INCHES = 0.18
_MIN_RADIUS_INCHES = 1.9
# Up to here labels stand upright without touching; beyond, each points away from the centre.
_MAX_UPRIGHT_LABELS = 24
# The width of a partial correlation of 1: no wider than a node, so that nodes stay in sight.
_WIDEST_POINTS = 7.0
_NODE_AREA = _WIDEST_POINTS**2
# Dash patterns, in line widths.
_FALSE = (0, (3.0, 1.5))
_MISSED = (0, (1.0, 2.2))


def network_svg(
    names: Sequence[str],
    edges: Sequence[Edge],
    *,
    edge_threshold: float,
    truth: frozenset[Pair] | None,
    title: str,
    measure: str,
) -> bytes:
    """Draw the selected pairs, by sign and size of their partial correlation.

    `measure` is what the figure calls that number: without a positive definite precision matrix
    it is no partial correlation.

    With a `truth`, a pair that is not in it is dashed and a true pair that was not selected is
    a dotted grey line. Positions depend on the order of `names` alone, so that two estimates of
    one table can be laid side by side.
    """
    return render(
        lambda figure: draw_network(
            figure,
            names,
            edges,
            edge_threshold=edge_threshold,
            truth=truth,
            title=title,
            measure=measure,
        )
    )


def draw_network(
    figure: Figure,
    names: Sequence[str],
    edges: Sequence[Edge],
    *,
    edge_threshold: float,
    truth: frozenset[Pair] | None,
    title: str,
    measure: str,
) -> None:
    """Draw what `network_svg` describes on an empty figure."""
    radius = max(_MIN_RADIUS_INCHES, len(names) * _ARC_INCHES / (2 * np.pi))
    figure.set_size_inches(2 * radius, 2 * radius)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-radius, radius), ylim=(-radius, radius), aspect="equal")
    axes.set_axis_off()

    selected = [edge for edge in edges if edge.selected]
    angles = _angles(len(names))
    positions = radius * np.column_stack([np.cos(angles), np.sin(angles)])
    where = dict(zip(names, positions, strict=True))
    if truth is not None:
        found = {pair(edge.source, edge.target) for edge in selected}
        for source, target in sorted(truth - found):
            missed = Line2D(
                *_ends(where[source], where[target]), color=PALE, linewidth=1.2, linestyle=_MISSED
            )
            axes.add_line(missed)
    # The strongest last, so that no weaker pair hides it.
    for edge in reversed(selected):
        axes.add_line(_edge_line(edge, where[edge.source], where[edge.target], truth))
    joined = {name for edge in selected for name in (edge.source, edge.target)}
    colours = [INK if name in joined else "white" for name in names]
    axes.scatter(
        positions[:, 0],
        positions[:, 1],
        s=_NODE_AREA,
        c=colours,
        edgecolors=INK,
        zorder=3,
        clip_on=False,
    )
    _write_names(axes, names, angles, radius)
    _explain(figure, selected, truth, measure)
    num_pairs = len(names) * (len(names) - 1) // 2
    rule = f"{len(selected)} of {num_pairs} pairs have |{measure}| ≥ {edge_threshold:g}"
    add_title(figure, title, rule)


def _angles(num_names: int) -> NDArray[np.float64]:
    """Return angles in radians, clockwise from the top."""
    return np.pi / 2 - 2 * np.pi * np.arange(num_names) / num_names


def _edge_line(edge: Edge, start: Point, end: Point, truth: frozenset[Pair] | None) -> Line2D:
    is_false = truth is not None and pair(edge.source, edge.target) not in truth
    return Line2D(
        *_ends(start, end),
        color=_colour(edge),
        linewidth=_line_width(edge.partial_correlation),
        linestyle=_FALSE if is_false else "-",
        clip_on=False,
        zorder=2,
    )


def _ends(start: Point, end: Point) -> tuple[list[float], list[float]]:
    return [start[0], end[0]], [start[1], end[1]]


def _colour(edge: Edge) -> str:
    return POSITIVE if edge.partial_correlation > 0 else NEGATIVE


def _line_width(partial_correlation: float) -> float:
    """Return the width in points: proportional to the size, but never too thin to be seen."""
    return max(0.5, _WIDEST_POINTS * min(abs(partial_correlation), 1.0))


def _write_names(
    axes: Axes, names: Sequence[str], angles: NDArray[np.float64], radius: float
) -> None:
    upright = len(names) <= _MAX_UPRIGHT_LABELS
    for name, angle in zip(names, angles, strict=True):
        x, y = np.cos(angle), np.sin(angle)
        is_left = x < -1e-9
        if upright:
            is_pole = abs(x) < 0.1
            horizontal = "center" if is_pole else "right" if is_left else "left"
            vertical = "center" if abs(y) < 0.9 else "bottom" if y > 0 else "top"
            rotation = 0.0
        else:
            horizontal = "right" if is_left else "left"
            vertical = "center"
            rotation = float(np.degrees(angle)) - (180 if is_left else 0)
        axes.text(
            (radius + _LABEL_GAP_INCHES) * x,
            (radius + _LABEL_GAP_INCHES) * y,
            label(name),
            horizontalalignment=horizontal,
            verticalalignment=vertical,
            rotation=rotation,
            rotation_mode="anchor",
        )


def _explain(
    figure: Figure, selected: Sequence[Edge], truth: frozenset[Pair] | None, measure: str
) -> None:
    handles = [
        Line2D([], [], color=POSITIVE, linewidth=3, label=f"positive {measure}"),
        Line2D([], [], color=NEGATIVE, linewidth=3, label=f"negative {measure}"),
    ]
    handles += [
        Line2D([], [], color=QUIET, linewidth=_line_width(size), label=f"size {size:g}")
        for size in _width_examples(selected)
    ]
    if truth is not None:
        num_found = sum(pair(edge.source, edge.target) in truth for edge in selected)
        num_false, num_missed = len(selected) - num_found, len(truth) - num_found
        handles += [
            Line2D([], [], color=INK, label=f"in the true graph ({num_found})"),
            Line2D([], [], color=INK, linestyle=_FALSE, label=f"not in it ({num_false})"),
            Line2D(
                [],
                [],
                color=PALE,
                linewidth=1.2,
                linestyle=_MISSED,
                label=f"true, not drawn ({num_missed})",
            ),
        ]
    add_legend(figure, handles)


def _width_examples(selected: Sequence[Edge]) -> list[float]:
    """Return up to three round sizes that span those drawn."""
    largest = max((abs(edge.partial_correlation) for edge in selected), default=0.0)
    return [size for size in (0.1, 0.3, 0.6) if size <= largest]

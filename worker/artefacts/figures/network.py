"""The estimated network: variables on a circle, selected pairs joined."""

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from service.results.edges import Edge
from worker.artefacts.figures.circle import Circle, write_names
from worker.artefacts.figures.drawing import (
    INK,
    NEGATIVE,
    PALE,
    POSITIVE,
    QUIET,
    add_legend,
    add_title,
)
from worker.artefacts.ground_truth import Pair, pair

# More lines than this hide each other. Every pair of 20 variables is less.
_MAX_LINES = 200
# The width of a partial correlation of 1: no wider than a node, so that nodes stay in sight.
_WIDEST_POINTS = 7.0
# Dash patterns, in line widths.
_FALSE = (0, (3.0, 1.5))
_MISSED = (0, (1.0, 2.2))


def draw_network(
    figure: Figure,
    names: Sequence[str],
    edges: Sequence[Edge],
    *,
    rule: str,
    truth: frozenset[Pair] | None,
    title: str,
    reason: str | None,
) -> None:
    """Draw the selected pairs, by sign and size of their partial correlation.

    `reason` says why there are no partial correlations, and so no selected pair; None where there
    are.

    With a `truth`, a pair that is not in it is dashed and a true pair that was not selected is
    a dotted grey line. Of very many pairs the strongest are drawn, of very many variables the most
    strongly joined are named, and the subtitle says so. Positions depend on the order of `names`
    alone, so that two estimates of one table can be laid side by side.
    """
    circle = Circle(len(names))
    side = 2 * circle.radius
    figure.set_size_inches(side, side)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(
        xlim=(-circle.radius, circle.radius), ylim=(-circle.radius, circle.radius), aspect="equal"
    )
    axes.set_axis_off()

    selected = [edge for edge in edges if edge.selected]
    drawn = selected[:_MAX_LINES]
    positions = circle.positions
    where = {name: place for place, name in enumerate(names)}
    if truth is not None:
        found = {pair(edge.source, edge.target) for edge in selected}
        for source, target in sorted(truth - found)[:_MAX_LINES]:
            points = circle.line(where[source], where[target])
            axes.add_line(Line2D(*points.T, color=PALE, linewidth=1.2, linestyle=_MISSED))
    # The strongest last, so that no weaker pair hides it.
    for edge in reversed(drawn):
        points = circle.line(where[edge.source], where[edge.target])
        axes.add_line(_edge_line(edge, points, truth))
    joined = {name for edge in selected for name in (edge.source, edge.target)}
    colours = [INK if name in joined else "white" for name in names]
    axes.scatter(
        positions[:, 0],
        positions[:, 1],
        s=circle.node_area,
        c=colours,
        edgecolors=INK,
        zorder=3,
        clip_on=False,
    )
    named = circle.named(_by_strongest_pair(names, edges))
    write_names(axes, circle, names, named)
    _explain(figure, selected, truth)
    num_pairs = len(names) * (len(names) - 1) // 2
    counted = f"{len(selected)} of {num_pairs} pairs have {rule}"
    notes = [counted if reason is None else f"no pair is selected: {reason}"]
    if len(drawn) < len(selected):
        notes.append(f"the strongest {len(drawn)} are drawn, {len(selected) - len(drawn)} are not")
    if len(named) < len(names):
        notes.append(f"{len(named)} of {len(names)} variables are named")
    add_title(figure, title, "\n".join(notes))


def _by_strongest_pair(names: Sequence[str], edges: Sequence[Edge]) -> Iterator[int]:
    """Yield the place of every variable, that of the strongest pairs first."""
    places = {name: place for place, name in enumerate(names)}
    for edge in edges:
        for name in (edge.source, edge.target):
            if name in places:
                yield places.pop(name)
    yield from places.values()


def _edge_line(edge: Edge, points: NDArray[np.float64], truth: frozenset[Pair] | None) -> Line2D:
    is_false = truth is not None and pair(edge.source, edge.target) not in truth
    return Line2D(
        *points.T,
        color=_colour(edge),
        linewidth=_line_width(edge.scaled_interaction),
        linestyle=_FALSE if is_false else "-",
        clip_on=False,
        zorder=2,
    )


def _colour(edge: Edge) -> str:
    return POSITIVE if edge.scaled_interaction > 0 else NEGATIVE


def _line_width(size: float) -> float:
    """Return the width in points: proportional to a correlation's size, but visible."""
    return max(0.5, _WIDEST_POINTS * min(abs(size), 1.0))


def _explain(figure: Figure, selected: Sequence[Edge], truth: frozenset[Pair] | None) -> None:
    handles = [
        Line2D([], [], color=POSITIVE, linewidth=3, label="positive partial correlation"),
        Line2D([], [], color=NEGATIVE, linewidth=3, label="negative partial correlation"),
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
                label=f"true, not selected ({num_missed})",
            ),
        ]
    add_legend(figure, handles)


def _width_examples(selected: Sequence[Edge]) -> list[float]:
    """Return up to three round sizes that span those drawn."""
    largest = max((abs(edge.scaled_interaction) for edge in selected), default=0.0)
    return [size for size in (0.1, 0.3, 0.6) if size <= largest]

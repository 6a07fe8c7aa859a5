"""The estimated network: variables, selected pairs joined."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from service.http.words import counted
from service.results.edges import Edge
from service.results.outcome import Artefact
from service.results.vocabulary import Verdict
from worker.artefacts.figures.circle import Circle
from worker.artefacts.figures.drawing import (
    INK,
    NEGATIVE,
    PALE,
    POSITIVE,
    QUIET,
    add_legend,
    add_title,
    figure_artefacts,
)
from worker.artefacts.figures.structure import Structure
from worker.artefacts.ground_truth import Pair, pair

# More lines than this hide each other. Every pair of 20 variables is less.
_MAX_LINES = 200
# The width of a partial correlation of 1: no wider than a node, so that nodes stay in sight.
_WIDEST_POINTS = 7.0
# Dash patterns, in line widths, and one in points, which thick short lines need.
_FALSE = (0, (3.0, 1.5))
_MISSED = (0, (1.0, 2.2))
_UNDECIDED_POINTS = (5.0, 3.0)
_PALENESS = 0.45


def network_figures(
    names: Sequence[str],
    edges: Sequence[Edge],
    *,
    rule: str,
    truth: frozenset[Pair] | None,
    title: str,
    reason: str | None,
) -> Iterator[Artefact]:
    """Yield the figures `network`, by its structure, and `network-circle`; see `draw_network`."""
    draw = partial(
        draw_network,
        names=names,
        edges=edges,
        rule=rule,
        truth=truth,
        title=title,
        reason=reason,
    )
    yield from figure_artefacts("network", partial(draw, lay_out=Structure.of))
    yield from figure_artefacts("network-circle", partial(draw, lay_out=Circle.of))


class Layout(Protocol):
    """Where everything is, in inches."""

    @property
    def positions(self) -> NDArray[np.float64]:
        """The places (d, 2) of all variables."""

    @property
    def shown(self) -> NDArray[np.intp]:
        """Those that are drawn."""

    @property
    def node_area(self) -> float:
        """The area of a node in square points."""

    def limits(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lower left and the upper right corner, each (2,)."""

    def line(self, one: int, other: int) -> NDArray[np.float64]:
        """Return the points (p, 2) of the line between two variables."""

    def write_names(self, axes: Axes, names: Sequence[str], by_importance: Iterable[int]) -> int:
        """Write the names that fit and return how many they are."""


def draw_network(
    figure: Figure,
    names: Sequence[str],
    edges: Sequence[Edge],
    lay_out: Callable[[Sequence[str], Sequence[Pair]], Layout],
    *,
    rule: str,
    truth: frozenset[Pair] | None,
    title: str,
    reason: str | None,
) -> None:
    """Draw the selected pairs, by sign and size of their partial correlation.

    Undecided pairs, of which the table does not tell whether they are edges, are dashed and pale:
    the strongest, as many as there are variables. `lay_out` places the variables, given which of
    them have a line between them. `rule` says which pairs are selected, after "4 of 6 pairs have".
    `reason` says why there are no partial correlations, and so no selected pair; None where there
    are.

    With a `truth`, a pair that is not in it is dashed, a true pair that was not selected is
    a dotted grey line, and undecided pairs are not drawn. Of very many pairs the strongest are
    drawn, of very many variables the most strongly joined are named, and the subtitle says so.
    """
    selected = [edge for edge in edges if edge.selected]
    drawn = selected[:_MAX_LINES]
    found = {pair(edge.source, edge.target) for edge in selected}
    missed = sorted((truth or frozenset()) - found)[:_MAX_LINES]
    undecided = [] if truth is not None else _undecided(edges)
    dashed = undecided[: min(len(names), _MAX_LINES - len(drawn))]
    lines = [(edge.source, edge.target) for edge in (*drawn, *dashed)]
    layout = lay_out(names, [*missed, *lines])
    axes = _empty_axes(figure, layout)
    where = {name: place for place, name in enumerate(names)}
    for source, target in missed:
        points = layout.line(where[source], where[target])
        axes.add_line(Line2D(*points.T, color=PALE, linewidth=1.2, linestyle=_MISSED))
    # The strongest last, so that no weaker pair hides it.
    for edge in (*reversed(dashed), *reversed(drawn)):
        points = layout.line(where[edge.source], where[edge.target])
        axes.add_line(_edge_line(edge, points, truth))
    joined = {name for edge in selected for name in (edge.source, edge.target)}
    axes.scatter(
        layout.positions[layout.shown, 0],
        layout.positions[layout.shown, 1],
        s=layout.node_area,
        c=[INK if names[place] in joined else "white" for place in layout.shown],
        edgecolors=INK,
        zorder=3,
        clip_on=False,
    )
    num_named = layout.write_names(axes, names, _by_strongest_pair(names, edges))
    handles = _edge_legend(drawn + dashed) + _undecided_legend(len(dashed), len(undecided))
    handles += [] if truth is None else _truth_legend(selected, truth)
    add_legend(figure, handles + _node_legend(names, joined))
    num_pairs = len(names) * (len(names) - 1) // 2
    held = f"{len(selected)} of {num_pairs} pairs have {rule}"
    notes = [held if reason is None else f"no pair is selected: {reason}"]
    if len(drawn) < len(selected):
        notes.append(f"the strongest {len(drawn)} are drawn, {len(selected) - len(drawn)} are not")
    if (num_left_out := len(names) - len(layout.shown)) > 0:
        notes.append(f"{num_left_out} variables without a line are left out")
    if num_named < len(layout.shown):
        notes.append(f"{num_named} of {len(names)} variables are named")
    add_title(figure, title, "\n".join(notes))


def _empty_axes(figure: Figure, layout: Layout) -> Axes:
    low, high = layout.limits()
    figure.set_size_inches(*(high - low))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    axes.set_axis_off()
    return axes


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
    width = _line_width(edge.scaled_interaction)
    return Line2D(
        *points.T,
        color=_colour(edge),
        alpha=None if edge.selected else _PALENESS,
        linewidth=width,
        linestyle=_FALSE if is_false else "-" if edge.selected else _undecided_dashes(width),
        clip_on=False,
        zorder=2,
    )


def _colour(edge: Edge) -> str:
    return POSITIVE if edge.scaled_interaction > 0 else NEGATIVE


def _line_width(size: float) -> float:
    """Return the width in points: proportional to a correlation's size, but visible."""
    return max(0.5, _WIDEST_POINTS * min(abs(size), 1.0))


def _undecided(edges: Sequence[Edge]) -> list[Edge]:
    return [e for e in edges if e.verdict is Verdict.UNDECIDED and not e.selected]


def _edge_legend(lines: Sequence[Edge]) -> list[Line2D]:
    if not lines:
        return []
    return [
        Line2D([], [], color=POSITIVE, linewidth=3, label="positive partial correlation"),
        Line2D([], [], color=NEGATIVE, linewidth=3, label="negative partial correlation"),
        *(
            Line2D([], [], color=QUIET, linewidth=_line_width(size), label=f"size {size:g}")
            for size in _width_examples(lines)
        ),
    ]


def _undecided_legend(num_drawn: int, num_undecided: int) -> list[Line2D]:
    if not num_drawn:
        return []
    which = "" if num_drawn == num_undecided else f"the strongest {num_drawn} of "
    text = f"undecided ({which}{counted(num_undecided, 'pair')})"
    return [
        Line2D(
            [],
            [],
            color=INK,
            alpha=_PALENESS,
            linewidth=2,
            linestyle=_undecided_dashes(2),
            label=text,
        )
    ]


def _undecided_dashes(width: float) -> tuple[float, tuple[float, ...]]:
    return 0, tuple(points / width for points in _UNDECIDED_POINTS)


def _truth_legend(selected: Sequence[Edge], truth: frozenset[Pair]) -> list[Line2D]:
    num_found = sum(pair(edge.source, edge.target) in truth for edge in selected)
    num_false, num_missed = len(selected) - num_found, len(truth) - num_found
    missed = f"true, not selected ({num_missed})"
    return [
        Line2D([], [], color=INK, label=f"in the true graph ({num_found})"),
        Line2D([], [], color=INK, linestyle=_FALSE, label=f"not in it ({num_false})"),
        Line2D([], [], color=PALE, linewidth=1.2, linestyle=_MISSED, label=missed),
    ]


def _node_legend(names: Sequence[str], joined: Collection[str]) -> list[Line2D]:
    """Return what filled and hollow nodes mean, those that there are."""
    counts = {
        "in a selected pair": (INK, len(joined)),
        "in no selected pair": ("white", len(names) - len(joined)),
    }
    return [
        Line2D(
            [],
            [],
            linestyle="none",
            marker="o",
            color=INK,
            markerfacecolor=colour,
            label=f"{text} ({counted(number, 'variable')})",
        )
        for text, (colour, number) in counts.items()
        if number
    ]


def _width_examples(lines: Sequence[Edge]) -> list[float]:
    """Return up to three round sizes that span those drawn."""
    largest = max((abs(edge.scaled_interaction) for edge in lines), default=0.0)
    return [size for size in (0.1, 0.3, 0.6) if size <= largest]

"""How two networks differ: the pairs of the largest |z|, in either network and their difference."""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from service.http.words import counted
from service.results.difference_result import DifferenceEdgeRead
from worker.artefacts.figures.drawing import (
    INK,
    NEGATIVE,
    PALE,
    POSITIVE,
    QUIET,
    add_legend,
    add_title,
    label,
)

# More would be no easier to read than the table.
_MOST_PAIRS = 40
_LINE_INCHES = 0.2
_PANEL_INCHES = (2.6, 3.4)


def draw_difference(
    figure: Figure,
    edges: Sequence[DifferenceEdgeRead],
    labels: tuple[str, str],
    fdr: float,
    title: str,
) -> None:
    """Draw at most 40 pairs, the largest |z| first, a line each.

    On the left its partial correlation in both networks, which the `labels` name; on the right the
    first minus the second with a 95 % interval, in the colour of its sign, hollow where the pair
    is not found to differ at a false discovery rate of `fdr`.
    """
    known = [edge for edge in edges if edge.z is not None]
    shown = known[:_MOST_PAIRS]
    figure.set_size_inches(sum(_PANEL_INCHES), _LINE_INCHES * (len(shown) + 1))
    networks, differences = figure.subplots(
        1, 2, sharey=True, gridspec_kw={"width_ratios": _PANEL_INCHES, "wspace": 0.08}
    )
    for axes in (networks, differences):
        axes.axvline(0, color=QUIET, linewidth=0.8)
        axes.tick_params(axis="y", length=0)
    for place, edge in enumerate(shown):
        _draw_networks(networks, place, edge)
        _draw_difference(differences, place, edge)
    names = [f"{label(edge.source)} – {label(edge.target)}" for edge in shown]
    networks.set_yticks(range(len(shown)), names)
    networks.set(ylim=(len(shown) - 0.3, -0.7), xlabel="partial correlation")
    differences.set_xlabel("difference")
    add_legend(figure, _legend(*map(label, labels)))
    found = f"{sum(edge.differs for edge in edges)} of {counted(len(edges), 'pair')}"
    which = "" if len(shown) == len(known) else f"; the {len(shown)} of the largest |z| are drawn"
    unknown = len(edges) - len(known)
    without = f"; {unknown} without standard errors" if unknown else ""
    rate = f"at a false discovery rate of {fdr:g}"
    add_title(figure, title, f"{found} found to differ {rate}{which}{without}")


def _draw_networks(axes: Axes, place: int, edge: DifferenceEdgeRead) -> None:
    first, second = edge.first or 0.0, edge.second or 0.0
    axes.hlines(place, min(first, second), max(first, second), color=PALE, linewidth=1.1)
    axes.plot(first, place, marker="o", color=INK, markersize=4.5)
    axes.plot(second, place, marker="D", color=INK, markerfacecolor="white", markersize=4.5)


def _draw_difference(axes: Axes, place: int, edge: DifferenceEdgeRead) -> None:
    difference = edge.difference or 0.0
    colour = POSITIVE if difference > 0 else NEGATIVE
    face = colour if edge.differs else "white"
    axes.hlines(place, edge.lower or 0.0, edge.upper or 0.0, color=colour, linewidth=1.6)
    axes.plot(difference, place, marker="o", color=colour, markerfacecolor=face, markersize=5.5)


def _legend(first: str, second: str) -> list[Artist]:
    def marked(text: str, marker: str, colour: str, *, is_filled: bool) -> Line2D:
        face = colour if is_filled else "white"
        return Line2D([], [], color=colour, marker=marker, markerfacecolor=face, label=text)

    networks = [
        marked(first, "o", INK, is_filled=True),
        marked(second, "D", INK, is_filled=False),
    ]
    for handle in networks:
        handle.set_linestyle("none")
    return [
        *networks,
        marked(f"larger in {first}", "o", POSITIVE, is_filled=True),
        marked(f"larger in {second}", "o", NEGATIVE, is_filled=True),
        marked("not found to differ", "o", POSITIVE, is_filled=False),
    ]

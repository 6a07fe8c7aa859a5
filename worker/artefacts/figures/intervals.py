"""What the table says of the strongest pairs: estimates, 95 % intervals and verdicts."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from service.http.words import counted
from service.results.edges import Edge
from service.results.vocabulary import Verdict
from worker.artefacts.figures.drawing import (
    FAINT,
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
_MAX_PAIRS = 40
_WIDTH_INCHES = 4.2
_LINE_INCHES = 0.2
_MARKERS = {Verdict.PRESENT: "o", Verdict.UNDECIDED: "o", Verdict.ABSENT: "s"}


def draw_intervals(
    figure: Figure, edges: Sequence[Edge], edge_threshold: float, *, title: str
) -> None:
    """Draw the pairs of the largest debiased partial correlations, at most 40 of those known.

    One line each: a marker at the estimate, by verdict and sign, its interval, and a stroke at the
    estimate with the penalty. The band reaches to `edge_threshold` on both sides of zero.
    """
    known = [(edge, edge.debiased) for edge in edges if edge.debiased is not None]
    known.sort(key=lambda item: -abs(item[1]))
    shown = known[:_MAX_PAIRS]
    figure.set_size_inches(_WIDTH_INCHES, _LINE_INCHES * (len(shown) + 1))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axvspan(-edge_threshold, edge_threshold, color=FAINT, alpha=0.5, linewidth=0)
    axes.axvline(0, color=QUIET, linewidth=0.8)
    for place, (edge, debiased) in enumerate(shown):
        colour = _colour(edge, debiased)
        axes.hlines(place, edge.lower or 0, edge.upper or 0, color=colour, linewidth=1.6)
        is_filled = edge.verdict is not Verdict.UNDECIDED
        axes.plot(
            debiased,
            place,
            marker=_MARKERS[edge.verdict or Verdict.UNDECIDED],
            color=colour,
            markerfacecolor=colour if is_filled else "white",
            markersize=5.5,
        )
        axes.plot(edge.scaled_interaction, place, marker="|", color=INK, markersize=8)
    names = [f"{label(edge.source)} – {label(edge.target)}" for edge, _ in shown]
    axes.set_yticks(range(len(shown)), names)
    axes.set(ylim=(len(shown) - 0.3, -0.7), xlabel="partial correlation")
    axes.tick_params(axis="y", length=0)
    add_legend(figure, _legend(edge_threshold))
    counts = [f"{sum(edge.verdict is verdict for edge in edges)} {verdict}" for verdict in Verdict]
    which = "" if len(shown) == len(edges) else f"; the {len(shown)} largest are drawn"
    add_title(figure, title, f"{counted(len(edges), 'pair')}: {', '.join(counts)}{which}")


def _colour(edge: Edge, debiased: float) -> str:
    if edge.verdict is Verdict.ABSENT:
        return PALE
    return POSITIVE if debiased > 0 else NEGATIVE


def _legend(edge_threshold: float) -> list[Line2D | Patch]:
    def marked(text: str, marker: str, colour: str, *, is_filled: bool) -> Line2D:
        face = colour if is_filled else "white"
        return Line2D([], [], color=colour, marker=marker, markerfacecolor=face, label=text)

    return [
        marked("present, positive", "o", POSITIVE, is_filled=True),
        marked("present, negative", "o", NEGATIVE, is_filled=True),
        marked("undecided, in the colour of its sign", "o", POSITIVE, is_filled=False),
        marked("absent", "s", PALE, is_filled=True),
        Line2D([], [], linestyle="none", color=INK, marker="|", label="estimate with the penalty"),
        Patch(color=FAINT, alpha=0.5, label=f"too small to matter: up to {edge_threshold:g}"),
    ]

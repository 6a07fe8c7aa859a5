"""Pairs over resamples: intervals of partial correlations, and how often each is selected."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from service.results.bootstrap_result import BootstrapEdgeRead, SpreadRead
from worker.artefacts.figures.drawing import (
    INK,
    PALE,
    POSITIVE,
    QUIET,
    add_legend,
    add_title,
    label,
)

# More lines than these cannot be told apart on a page; tables have all.
_MOST_PAIRS = 60
_LINE_INCHES = 0.17
_PANEL_INCHES = (4.2, 1.6)


def draw_bootstrap(figure: Figure, edges: Sequence[BootstrapEdgeRead], title: str) -> None:
    """Draw the strongest pairs, each with its intervals and its inclusion."""
    shown = edges[:_MOST_PAIRS]
    figure.set_size_inches(sum(_PANEL_INCHES), max(_LINE_INCHES * len(shown), 1.0))
    intervals, inclusion = figure.subplots(
        1, 2, sharey=True, gridspec_kw={"width_ratios": _PANEL_INCHES, "wspace": 0.05}
    )
    places = range(len(shown))
    intervals.axvline(0.0, color=PALE, linewidth=0.8)
    debiased = [edge.debiased for edge in shown]
    estimated = [edge.partial_correlation for edge in shown]
    _draw_spreads(intervals, debiased, INK, "o", 0.0, "without the penalty's bias")
    _draw_spreads(intervals, estimated, POSITIVE, "s", 0.3, "as estimated")
    intervals.set_yticks(places, [f"{label(e.source)} – {label(e.target)}" for e in shown])
    intervals.tick_params(axis="y", labelsize=7, length=0)
    intervals.set_ylim(len(shown) - 0.4, -0.6)
    intervals.set_xlabel("partial correlation")
    shares = [(y, edge.inclusion) for y, edge in enumerate(shown) if edge.inclusion is not None]
    inclusion.barh([y for y, _ in shares], [share for _, share in shares], 0.6, color=QUIET)
    inclusion.set(xlim=(0, 1), xlabel="selected, share")
    add_legend(figure, intervals.get_legend_handles_labels()[0])
    left = f"The {len(shown)} strongest of {len(edges)} pairs. " if len(shown) < len(edges) else ""
    add_title(figure, title, f"{left}Mean and 95 % percentile interval over resamples.")


def _draw_spreads(
    axes: Axes, spreads: Sequence[SpreadRead], colour: str, marker: str, shift: float, name: str
) -> None:
    known = [
        (place + shift, spread.mean, spread.lower, spread.upper)
        for place, spread in enumerate(spreads)
        if spread.mean is not None and spread.lower is not None and spread.upper is not None
    ]
    if not known:
        return
    y, mean, lower, upper = zip(*known, strict=True)
    axes.hlines(y, lower, upper, color=colour, linewidth=1.1)
    axes.plot(mean, y, marker, color=colour, markersize=3, label=name)

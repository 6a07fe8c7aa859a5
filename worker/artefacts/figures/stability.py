"""How far a network stays what it is where rows are left out: correlations with the whole."""

from matplotlib.figure import Figure

from service.results.bootstrap_result import CorrelationStabilityRead
from vnce_engine.inference.correlation_stability import LEAST_CORRELATION
from worker.artefacts.figures.drawing import PALE, SERIES, add_legend, add_title

_SIZE_INCHES = (4.8, 2.8)
STATISTICS = {
    "edges": "partial correlations",
    "strength": "strength",
    "expected_influence": "expected influence",
}
_MARKERS = ("o", "s", "^")


def draw_stability(figure: Figure, stability: CorrelationStabilityRead, title: str) -> None:
    """Draw mean correlations, and fifth percentiles, against the share of rows left out."""
    figure.set_size_inches(*_SIZE_INCHES)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axhline(LEAST_CORRELATION, color=PALE, linewidth=0.8)
    looks = zip(STATISTICS.items(), SERIES, _MARKERS, strict=False)
    for (name, words), colour, marker in looks:
        one = getattr(stability, name)
        known = [
            (100 * share, mean, lower)
            for share, mean, lower in zip(stability.dropped, one.mean, one.lower, strict=True)
            if mean is not None and lower is not None
        ]
        if not known:
            continue
        shares, means, lowers = zip(*known, strict=True)
        axes.plot(shares, means, color=colour, marker=marker, markersize=4, label=words)
        axes.plot(shares, lowers, color=colour, linewidth=0.9, linestyle=(0, (1, 1.5)))
    axes.set(xlabel="rows left out, %", ylabel="correlation with all rows", xlim=(0, 80))
    axes.set_ylim(top=1.02)
    if handles := axes.get_legend_handles_labels()[0]:
        add_legend(figure, handles)
    add_title(
        figure, title, "Means over subsets; dotted lines are fifth percentiles, the grey one .7."
    )

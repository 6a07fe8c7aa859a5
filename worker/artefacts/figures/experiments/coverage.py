"""Coverage of 95 % intervals against sample size: a column a graph, a row a linear term."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from vnce_engine.experiments.experiment import Row, Scalar, SummaryTable
from worker.artefacts.figures.drawing import FAINT, QUIET, SERIES, add_legend, add_title
from worker.artefacts.figures.experiments.looks import numbers

_PANEL_INCHES = (3.3, 2.6)
_NOMINAL, _BAND = 0.95, (0.93, 0.97)
# Of the pairs that are edges, and of the others: columns of the summary and how they are drawn.
_PAIRS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("edges", "edges", {"linestyle": "-", "marker": "o"}),
    ("other pairs", "others", {"linestyle": (0, (2, 1.2)), "marker": "s", "mfc": "white"}),
)
# Lines of one n stand this far apart, as a factor of n, so that their bars can be seen.
_SPREAD = 1.12

Line = Mapping[str, Scalar]


def draw(figure: Figure, rows: Sequence[Row], tables: Sequence[SummaryTable]) -> None:
    """Draw the share of intervals that hold the truth, two standard errors to either side."""
    summary = next(table for table in tables if table.name == "coverage")
    lines: list[Line] = [dict(zip(summary.columns, row, strict=True)) for row in summary.rows]
    graphs, linears = (
        list(dict.fromkeys(line[key] for line in lines)) for key in ("graph", "linear")
    )
    width, height = _PANEL_INCHES
    figure.set_size_inches(width * len(graphs), height * len(linears))
    panels = figure.subplots(
        len(linears),
        len(graphs),
        squeeze=False,
        sharex=True,
        sharey=True,
        gridspec_kw={"wspace": 0.08, "hspace": 0.22},
    )
    for linear, row_of_panels in zip(linears, panels, strict=True):
        for graph, axes in zip(graphs, row_of_panels, strict=True):
            shown = [line for line in lines if (line["graph"], line["linear"]) == (graph, linear)]
            _draw_panel(axes, shown, list(dict.fromkeys(line["missing"] for line in lines)))
            axes.set_title(f"{graph}, h {linear}", fontsize=9, loc="left")
        row_of_panels[0].set_ylabel("intervals that hold the truth")
    for axes in panels[-1]:
        axes.set_xlabel("rows, n")
    _set_axes(panels[0, 0], sorted(set(numbers(lines, "n"))))
    add_legend(figure, panels[0, 0].get_legend_handles_labels()[0])
    most = max((int(value) for value in numbers(lines, "tables")), default=0)
    add_title(
        figure,
        "Coverage of 95 % intervals of partial correlations",
        f"At most {most} tables a point; bars are two standard errors over tables, the band is "
        ".93 to .97.",
    )


def _draw_panel(axes: Axes, lines: Sequence[Line], fractions: Sequence[Scalar]) -> None:
    axes.axhspan(*_BAND, color=FAINT, alpha=0.5, linewidth=0)
    axes.axhline(_NOMINAL, color=QUIET, linewidth=0.8, linestyle=":")
    looks = [
        (fraction, colour, *pairs)
        for fraction, colour in zip(fractions, SERIES, strict=False)
        for pairs in _PAIRS
    ]
    for place, (fraction, colour, name, column, look) in enumerate(looks):
        points = [
            line for line in lines if line["missing"] == fraction and line[column] is not None
        ]
        shift = _SPREAD ** (place - (len(looks) - 1) / 2)
        axes.errorbar(
            [n * shift for n in numbers(points, "n")],
            numbers(points, column),
            yerr=[2 * float(line[f"{column}_se"] or 0.0) for line in points],
            label=f"{name}, {fraction:.0%} missing",
            color=colour,
            markersize=4,
            linewidth=1.2,
            elinewidth=0.8,
            **look,
        )


def _set_axes(axes: Axes, sizes: Sequence[float]) -> None:
    axes.set_xscale("log")
    axes.set_xticks(sizes)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(top=1.01)

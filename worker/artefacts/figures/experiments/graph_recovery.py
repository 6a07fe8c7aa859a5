"""Edge recovery against the share of missing cells: a column a graph, a row a measure."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from vnce_engine.experiments.experiment import Row, Scalar, SummaryTable
from vnce_engine.experiments.recovery_estimators import ESTIMATORS
from worker.artefacts.figures.drawing import QUIET, add_legend, add_title
from worker.artefacts.figures.experiments.looks import LINE_LOOKS, numbers

_PANEL_INCHES = (4.6, 2.9)
_AREA = "area under the ROC curve"
# Column of the summary, title of the panel, label of its axis.
_MEASURES = (
    ("auc_abs", "pairs ranked by |K|", _AREA),
    ("auc_signed", "pairs ranked by K, sign known", _AREA),
    ("mse", "K off the diagonal", "mean squared error"),
    ("seconds", "time of a fit", "CPU seconds"),
)
_CHANCE = 0.5
# Bars of estimators stand this far apart, in per cent of missing cells, so that all can be seen.
_SPREAD = 2.4
# Of the estimator that is named first, with which the others are compared.
_LEADING_LOOK: Mapping[str, Any] = {"linewidth": 3.0, "markersize": 7, "zorder": 4}

Line = Mapping[str, Scalar]


def draw(figure: Figure, rows: Sequence[Row], tables: Sequence[SummaryTable]) -> None:
    """Draw medians with quartile bars, as in Figure 5 of the paper; errors and times besides."""
    medians = next(table for table in tables if table.name == "medians")
    lines = [dict(zip(medians.columns, row, strict=True)) for row in medians.rows]
    measures = [measure for measure in _MEASURES if numbers(lines, measure[0])]
    graphs = list(dict.fromkeys(str(line["graph"]) for line in lines))
    leading, *others = dict.fromkeys(str(line["estimator"]) for line in lines)
    names = [name for name in ESTIMATORS if name in (leading, *others)]  # relatives side by side
    width, height = _PANEL_INCHES
    figure.set_size_inches(width * len(graphs), height * len(measures))
    panels = figure.subplots(
        len(measures),
        len(graphs),
        squeeze=False,
        sharex=True,
        sharey="row",
        gridspec_kw={"wspace": 0.08, "hspace": 0.22},
    )
    for (column, title, label), row_of_panels in zip(measures, panels, strict=True):
        for graph, axes in zip(graphs, row_of_panels, strict=True):
            of_graph = [line for line in lines if line["graph"] == graph]
            _draw_measure(axes, of_graph, names, leading, column)
            axes.set_title(f"{graph}: {title}", fontsize=9, loc="left")
        row_of_panels[0].set_ylabel(label)
    for axes in panels[-1]:
        axes.set_xlabel("cells missing, %")
    add_legend(figure, panels[0, 0].get_legend_handles_labels()[0])
    num_sets = max(int(line["data_sets"]) for line in lines if isinstance(line["data_sets"], int))
    note = "the dotted line is chance" if measures[0][0] == "auc_abs" else "none could be scored"
    add_title(
        figure,
        "Edge recovery from incomplete data",
        f"Medians and quartiles over {num_sets} data set{'s' if num_sets > 1 else ''}; {note}.",
    )


def _draw_measure(
    axes: Axes, lines: Sequence[Line], names: Sequence[str], leading: str, column: str
) -> None:
    for place, name in enumerate(names):
        points = [line for line in lines if line["estimator"] == name and line[column] is not None]
        shift = _SPREAD * ((place + 0.5) / len(names) - 0.5)
        axes.errorbar(
            [100 * value + shift for value in numbers(points, "missing")],
            numbers(points, column),
            yerr=_bars(points, column),
            label=ESTIMATORS[name].title,
            capsize=2,
            elinewidth=0.9,
            **{**LINE_LOOKS[place % len(LINE_LOOKS)], **(_LEADING_LOOK if name == leading else {})},
        )
    if column.startswith("auc"):
        axes.axhline(_CHANCE, color=QUIET, linewidth=0.8, linestyle=":")
    else:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _bars(points: Sequence[Line], column: str) -> Any:
    """Return lengths of bars below and above the medians; None where there are no quartiles."""
    low, high = (numbers(points, f"{column}_{end}") for end in ("q1", "q3"))
    middle = numbers(points, column)
    if not low:
        return None
    return (
        [m - q for m, q in zip(middle, low, strict=True)],
        [q - m for m, q in zip(middle, high, strict=True)],
    )

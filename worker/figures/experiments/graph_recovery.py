"""Edge recovery against the share of missing cells: one panel a graph and score."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from vnce_engine.experiments.experiment import Row, SummaryTable
from vnce_engine.experiments.recovery_estimators import ESTIMATORS
from worker.figures.drawing import QUIET, add_legend, add_title
from worker.figures.experiments.looks import LINE_LOOKS, numbers

_PANEL_INCHES = (4.6, 3.2)
_SCORES = {"auc_abs": "pairs ranked by |K|", "auc_signed": "pairs ranked by K, sign known"}


def draw(figure: Figure, rows: Sequence[Row], tables: Sequence[SummaryTable]) -> None:
    """Draw medians with quartile bars, as in Figure 5 of the paper."""
    medians = next(table for table in tables if table.name == "medians")
    lines = [dict(zip(medians.columns, row, strict=True)) for row in medians.rows]
    graphs = list(dict.fromkeys(str(line["graph"]) for line in lines))
    names = list(dict.fromkeys(str(line["estimator"]) for line in lines))
    width, height = _PANEL_INCHES
    figure.set_size_inches(width * len(graphs), height * len(_SCORES))
    panels = figure.subplots(
        len(_SCORES),
        len(graphs),
        squeeze=False,
        sharex=True,
        sharey=True,
        gridspec_kw={"wspace": 0.08, "hspace": 0.2},
    )
    handles = []
    for (score, score_label), row_of_panels in zip(_SCORES.items(), panels, strict=True):
        for graph, axes in zip(graphs, row_of_panels, strict=True):
            for place, name in enumerate(names):
                points = [
                    line for line in lines if (line["graph"], line["estimator"]) == (graph, name)
                ]
                # Moved apart a little, so that bars do not hide one another.
                shift = 0.6 * (place - (len(names) - 1) / 2) / max(len(names), 2)
                x = [100 * value + 2 * shift for value in numbers(points, "missing")]
                middle = numbers(points, score)
                bars = (
                    [m - q for m, q in zip(middle, numbers(points, f"{score}_q1"), strict=True)],
                    [q - m for m, q in zip(middle, numbers(points, f"{score}_q3"), strict=True)],
                )
                drawn = axes.errorbar(
                    x,
                    middle,
                    yerr=bars,
                    label=ESTIMATORS[name].title,
                    capsize=2,
                    elinewidth=0.9,
                    **LINE_LOOKS[place % len(LINE_LOOKS)],
                )
                if axes is panels[0, 0]:
                    handles.append(drawn)
            axes.axhline(0.5, color=QUIET, linewidth=0.8, linestyle=":")
            axes.set_title(f"{graph}, {score_label}", fontsize=9, loc="left")
    for axes in panels[-1]:
        axes.set_xlabel("cells missing, %")
    for axes in panels[:, 0]:
        axes.set_ylabel("area under the ROC curve")
    add_legend(figure, handles)
    num_sets = max(int(value) for value in numbers(lines, "data_sets"))
    add_title(
        figure,
        "Edge recovery from incomplete data",
        f"Medians and quartiles over {num_sets} data sets; the dotted line is chance.",
    )

"""Squared errors of the mixture's parameters against sample size, on logarithmic scales."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from vnce_engine.experiments.experiment import Row, SummaryTable
from worker.figures.drawing import SERIES, add_legend, add_title
from worker.figures.experiments.looks import numbers

_PANEL_INCHES = (4.2, 3.4)
_PARAMETERS = {"theta": "standard deviation θ", "c": "log partition c"}
# VNCE and NCE nearly coincide: the wide pale line shows below the narrow broken one.
_LOOKS: tuple[dict[str, Any], ...] = (
    {"color": SERIES[0], "marker": "o", "markersize": 7, "linewidth": 3.5, "alpha": 0.5},
    {"color": SERIES[1], "marker": "s", "markersize": 3, "linestyle": (0, (4, 2))},
    {"color": SERIES[2], "marker": "^", "markersize": 4},
)
_DECILE = {"linewidth": 0.9, "linestyle": (0, (1, 1.5))}


def draw(figure: Figure, rows: Sequence[Row], tables: Sequence[SummaryTable]) -> None:
    """Draw medians and deciles of every estimator, as in Figure 4 of the paper."""
    by_name = {table.name: table for table in tables}
    errors = [
        dict(zip(by_name["errors"].columns, row, strict=True)) for row in by_name["errors"].rows
    ]
    slopes = {(row[0], row[1]): row for row in by_name["slopes"].rows}
    names = list(dict.fromkeys(str(line["estimator"]) for line in errors))
    width, height = _PANEL_INCHES
    figure.set_size_inches(width * len(_PARAMETERS), height)
    panels = figure.subplots(1, len(_PARAMETERS), gridspec_kw={"wspace": 0.28})
    for (parameter, title), axes in zip(_PARAMETERS.items(), panels, strict=True):
        for name, look in zip(names, _LOOKS, strict=False):
            points = [line for line in errors if line["estimator"] == name]
            n = numbers(points, "n")
            median = numbers(points, f"{parameter}_median")
            axes.plot(n, median, label=f"{name}, median", **look)
            for level in ("d1", "d9"):
                decile = numbers(points, f"{parameter}_{level}")
                axes.plot(n, decile, color=look["color"], **_DECILE)
        axes.set(xscale="log", yscale="log", xlabel="sample size n", ylabel="squared error")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        known = [slopes[name, parameter] for name in names if (name, parameter) in slopes]
        text = ", ".join(f"{row[0]} {row[3]:.2f} ± {row[4]:.2f}" for row in known)
        text = f"{title}\nslope: {text or 'too few points'}".replace("-", "−")
        axes.set_title(text, fontsize=8, loc="left")
    add_legend(figure, panels[0].get_lines()[::3])
    num_truths = max(int(value) for value in numbers(errors, "truths"))
    add_title(
        figure,
        "Errors of an unnormalised mixture of two normals",
        f"{num_truths} true values; dotted lines are first and ninth deciles; slopes of the "
        "logarithms with standard errors.",
    )

"""Squared errors of the mixture's parameters, and local optima, against sample size."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from vnce_engine.experiments.experiment import Row, Scalar, SummaryTable
from worker.artefacts.figures.drawing import SERIES, add_legend, add_title
from worker.artefacts.figures.experiments.looks import numbers

_PANEL_INCHES = (3.3, 3.2)
_PARAMETERS = {"theta": "standard deviation θ", "c": "log partition c"}
# VNCE and NCE nearly coincide: the wide pale line shows below the narrow broken one.
_LOOKS: tuple[dict[str, Any], ...] = (
    {"color": SERIES[0], "marker": "o", "markersize": 7, "linewidth": 3.5, "alpha": 0.5},
    {"color": SERIES[1], "marker": "s", "markersize": 3, "linestyle": (0, (4, 2))},
    {"color": SERIES[2], "marker": "^", "markersize": 4},
)
_DECILE: dict[str, Any] = {"linewidth": 0.9, "linestyle": (0, (1, 1.5))}

Line = Mapping[str, Scalar]


def draw(figure: Figure, rows: Sequence[Row], tables: Sequence[SummaryTable]) -> None:
    """Draw medians and deciles of every estimator, as in Figure 4 of the paper."""
    lines: dict[str, list[Line]] = {
        table.name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        for table in tables
    }
    errors, slopes = lines["errors"], lines["slopes"]
    width, height = _PANEL_INCHES
    num_panels = len(_PARAMETERS) + 1
    figure.set_size_inches(width * num_panels, height)
    panels = figure.subplots(1, num_panels, gridspec_kw={"wspace": 0.42})
    for (parameter, title), axes in zip(_PARAMETERS.items(), panels, strict=False):
        _draw_errors(axes, errors, parameter)
        of_parameter = [line for line in slopes if line["parameter"] == parameter]
        text = "\n".join([title, *map(_slope_in_words, of_parameter)]).replace("-", "−")
        axes.set_title(text, fontsize=8, loc="left")
    _draw_local(panels[-1], errors)
    add_legend(figure, panels[-1].get_lines())
    num_truths = max(int(value) for value in numbers(errors, "truths"))
    add_title(
        figure,
        "Errors of an unnormalised mixture of two normals",
        f"{num_truths} true values: medians; dotted lines are first and ninth deciles.\nSlopes are "
        "of log squared error on log n, ± their standard errors, without true values of which an "
        "estimate diverged.",
    )


def _slope_in_words(line: Line) -> str:
    slope, error, left_out = line["slope"], line["standard_error"], line["left_out"]
    found = "no slope" if slope is None else f"slope {slope:.2f} ± {error:.2f}"
    return f"{line['estimator']}: {found}" + (f" ({left_out} without)" if left_out else "")


def _draw_errors(axes: Axes, errors: Sequence[Line], parameter: str) -> None:
    for points, look in _by_estimator(errors):
        n = numbers(points, "n")
        axes.plot(n, numbers(points, f"{parameter}_median"), **look)
        for level in ("d1", "d9"):
            decile = numbers(points, f"{parameter}_{level}")
            axes.plot(n, decile, color=look["color"], **_DECILE)
    axes.set(xscale="log", yscale="log", xlabel="sample size n", ylabel="squared error")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _draw_local(axes: Axes, errors: Sequence[Line]) -> None:
    for points, look in _by_estimator(errors):
        shares = [100 * share for share in numbers(points, "local_share_of_starts")]
        axes.plot(numbers(points, "n"), shares, label=str(points[0]["estimator"]), **look)
    axes.set(
        xscale="log", xlabel="sample size n", ylabel="local optima, % of starts", ylim=(0, None)
    )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_title("one random start\nthat ends in a local optimum", fontsize=8, loc="left")


def _by_estimator(errors: Sequence[Line]) -> list[tuple[list[Line], dict[str, Any]]]:
    names = list(dict.fromkeys(str(line["estimator"]) for line in errors))
    groups = ([line for line in errors if line["estimator"] == name] for name in names)
    return list(zip(groups, _LOOKS, strict=False))

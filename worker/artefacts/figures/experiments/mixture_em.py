"""E- and M-steps of the EM algorithm for VNCE: a panel a step, and the objective after each."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from vnce_engine.experiments.experiment import Row, SummaryTable
from worker.artefacts.figures.drawing import INK, NEGATIVE, POSITIVE, QUIET, add_legend, add_title
from worker.artefacts.figures.experiments.looks import numbers

_PANEL_INCHES = (2.9, 2.3)
# Curves are cut off where they are lower than the start by this share of what there is to climb.
_MARGIN = 0.6
_MARK: dict[str, Any] = {"linestyle": "none", "markersize": 7, "markerfacecolor": "none"}
# Differences between objectives below this are rounding.
_ROUNDING = 1e-14


def draw(figure: Figure, rows: Sequence[Row], tables: Sequence[SummaryTable]) -> None:
    """Draw both objectives after each drawn step, as in Figure 3 of the paper, and the climb."""
    by_table = {name: _of(rows, name) for name in ("curves", "steps", "maxima")}
    curves, steps = by_table["curves"], by_table["steps"]
    pairs = sorted({int(pair) for pair in numbers(curves, "pair")})
    (highest,) = (row for row in by_table["maxima"] if row["objective"] == "NCE")
    width, height = _PANEL_INCHES
    figure.set_size_inches(width * len(pairs), 3.3 * height)
    grid = figure.add_gridspec(3, len(pairs), hspace=0.5, height_ratios=(1, 1, 0.8))
    first = None
    for row_of_panels, kind in enumerate("EM"):
        for place, pair in enumerate(pairs):
            axes = figure.add_subplot(grid[row_of_panels, place], sharex=first, sharey=first)
            first = first or axes
            after = next(row for row in steps if row["step"] == 2 * pair + (kind == "M"))
            points = [row for row in curves if row["pair"] == pair]
            _draw_panel(axes, points, after, highest, f"{kind}-step {pair + 1}")
            axes.tick_params(labelleft=place == 0, labelbottom=kind == "M")
            axes.set(ylabel="nats per row" if place == 0 else "", xlabel="θ" if kind == "M" else "")
    assert first is not None  # the last pair is always drawn
    start, end = numbers(steps, "nce")[0], numbers([highest], "value")[0]
    first.set_ylim(start - _MARGIN * (end - start), end + 0.2 * (end - start))
    _draw_climb(figure.add_subplot(grid[2, :]), steps, highest)
    add_legend(figure, first.get_lines()[:4])
    add_title(
        figure,
        "EM for VNCE on a mixture of two normals",
        "An E-step makes the bound touch J_NCE at the present θ; an M-step moves θ to the bound's "
        "maximum, and J_NCE is never below it.",
    )


def _draw_panel(axes: Axes, points: Sequence[Row], after: Row, highest: Row, title: str) -> None:
    theta, here = numbers(points, "theta"), [after]
    axes.plot(theta, numbers(points, "nce"), color=POSITIVE, linewidth=1.6, label="J_NCE(θ)")
    axes.plot(
        theta,
        numbers(points, "vnce"),
        color=NEGATIVE,
        linewidth=1.6,
        linestyle=(0, (5, 1.5)),
        label="J_VNCE(θ, q)",
    )
    axes.plot(
        numbers([highest], "theta"),
        numbers([highest], "value"),
        marker="o",
        color=POSITIVE,
        label="maximum of J_NCE",
        **_MARK,
    )
    axes.plot(
        numbers(here, "theta"),
        numbers(here, "vnce"),
        marker="s",
        color=NEGATIVE,
        label="θ after this step",
        **_MARK,
    )
    axes.axvline(numbers(here, "theta")[0], color=QUIET, linewidth=0.8, linestyle=":")
    axes.set_title(title, fontsize=9, loc="left")


def _draw_climb(axes: Axes, steps: Sequence[Row], highest: Row) -> None:
    """Draw by how much J_NCE is below its maximum before the first and after every M-step."""
    end = numbers([highest], "value")[0]
    values = [row for row in steps if row["kind"] == "E"] + [steps[-1]]
    below = [(k, end - value) for k, value in enumerate(numbers(values, "nce"))]
    shown = [(k, gap) for k, gap in below if gap > _ROUNDING]
    axes.plot(*zip(*shown, strict=True), color=INK, marker="o", markersize=4, linewidth=1.4)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xticks([k for k, _ in below])
    axes.set(xlabel="M-steps done", ylabel="nats per row")
    axes.set_title(
        "J_NCE below its maximum: never rises; not drawn where it is rounding",
        fontsize=9,
        loc="left",
    )


def _of(rows: Sequence[Row], table: str) -> list[Row]:
    return [row for row in rows if row["table"] == table]

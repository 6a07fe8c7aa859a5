"""E- and M-steps of the EM algorithm for VNCE: one panel a step."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vnce_engine.experiments.experiment import Row, SummaryTable
from worker.figures.drawing import NEGATIVE, POSITIVE, QUIET, add_legend, add_title
from worker.figures.experiments.looks import numbers

_PANEL_INCHES = (2.9, 2.3)
# Below the best value by this much nothing of interest is drawn.
_DEPTH = 0.35
_MARK: dict[str, Any] = {"linestyle": "none", "markersize": 7, "markerfacecolor": "none"}


def draw(figure: Figure, rows: Sequence[Row], tables: Sequence[SummaryTable]) -> None:
    """Draw both objectives after each drawn step, as in Figure 3 of the paper."""
    curves = [row for row in rows if row["table"] == "curves"]
    steps = [row for row in rows if row["table"] == "steps"]
    pairs = sorted({int(pair) for pair in numbers(curves, "pair")})
    width, height = _PANEL_INCHES
    figure.set_size_inches(width * len(pairs), 2 * height)
    panels = figure.subplots(2, len(pairs), squeeze=False, sharex=True, sharey=True)
    for kind, row_of_panels in zip("EM", panels, strict=True):
        for pair, axes in zip(pairs, row_of_panels, strict=True):
            points = [row for row in curves if row["pair"] == pair]
            after = next(row for row in steps if row["step"] == 2 * pair + (kind == "M"))
            _draw_panel(axes, points, after, f"{kind}-step {pair + 1}")
    best = max(numbers(steps, "nce"))
    panels[0, 0].set_ylim(best - _DEPTH, best + 0.1 * _DEPTH)
    for axes in panels[-1]:
        axes.set_xlabel("θ")
    for axes in panels[:, 0]:
        axes.set_ylabel("objective, nats a row")
    add_legend(figure, panels[0, 0].get_lines()[:4])
    add_title(
        figure,
        "EM for VNCE on a mixture of two normals",
        "An E-step makes the bound touch J_NCE at the present θ; an M-step moves θ to its maximum.",
    )


def _draw_panel(axes: Axes, points: Sequence[Row], after: Row, title: str) -> None:
    theta = numbers(points, "theta")
    nce = numbers(points, "nce")
    axes.plot(theta, nce, color=POSITIVE, linewidth=1.6, label="J_NCE(θ)")
    axes.plot(
        theta,
        numbers(points, "vnce"),
        color=NEGATIVE,
        linewidth=1.6,
        linestyle=(0, (5, 1.5)),
        label="J_VNCE(θ, q)",
    )
    best = max(range(len(nce)), key=nce.__getitem__)
    axes.plot(
        theta[best : best + 1],
        nce[best : best + 1],
        marker="o",
        color=POSITIVE,
        label="largest J_NCE on the grid",
        **_MARK,
    )
    here = [after]
    axes.plot(
        numbers(here, "theta"),
        numbers(here, "vnce"),
        marker="s",
        color=NEGATIVE,
        label="J_VNCE at θ after this step",
        **_MARK,
    )
    axes.axvline(numbers(here, "theta")[0], color=QUIET, linewidth=0.8, linestyle=":")
    axes.set_title(title, fontsize=9, loc="left")

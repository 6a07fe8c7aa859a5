"""The product-latent toy: samples of it and of the noises, and posteriors by several methods."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vnce_engine.experiments.experiment import Row, Scalar, SummaryTable
from vnce_engine.experiments.posterior_toy import LANDMARKS
from worker.artefacts.figures.drawing import INK, PALE, SERIES, add_legend, add_title
from worker.artefacts.figures.experiments.looks import numbers

_PANEL_INCHES = 1.8
# A density goes from white to dark in one hue, which can be read in grey print too.
_COLOURS = "Blues"
# Colour and marker of each landmark.
_LANDMARK_LOOKS = tuple(zip(SERIES[1:], ("o", "s", "^"), strict=True))
_LATENTS, _DATA = "latents", "data"


def draw(figure: Figure, rows: Sequence[Row], tables: Sequence[SummaryTable]) -> None:
    """Draw Figures 1 and 2 of the paper: samples above, below them a row for each method."""
    points, densities = _of(rows, "points"), _of(rows, "densities")
    samples = list(dict.fromkeys(str(row["sample"]) for row in points))
    methods = list(dict.fromkeys(str(row["method"]) for row in densities))
    num_rows = bool(samples) + len(methods)
    num_columns = max(len(samples), len(LANDMARKS))
    figure.set_size_inches(_PANEL_INCHES * num_columns, _PANEL_INCHES * num_rows)
    grid = figure.add_gridspec(num_rows, num_columns, hspace=0.35, wspace=0.35)
    for place, sample in enumerate(samples):
        _draw_points(figure.add_subplot(grid[0, place]), points, sample)
    for line, method in enumerate(methods, start=int(bool(samples))):
        for place, (colour, _) in enumerate(_LANDMARK_LOOKS):
            axes = figure.add_subplot(grid[line, place])
            wanted = (method, place + 1)
            _draw_density(axes, [r for r in densities if (r["method"], r["landmark"]) == wanted])
            for spine in axes.spines.values():
                spine.set(color=colour, visible=True, linewidth=1.4)
            axes.set_title(_divergence(rows, method, place + 1), fontsize=8, loc="left", pad=3)
            axes.tick_params(labelbottom=line == num_rows - 1, labelleft=place == 0)
            if line == num_rows - 1:
                axes.set_xlabel("z1", labelpad=1)
        _name(figure.axes[-len(_LANDMARK_LOOKS)], method)
    add_legend(
        figure,
        [
            Line2D([], [], linestyle="none", label=f"x = ({a:g}, {b:g})", **_mark(place))
            for place, (a, b) in enumerate(LANDMARKS)
        ],
    )
    add_title(
        figure,
        "Posteriors of the product-latent toy",
        "Above: samples of the model and the noises. Below: densities of the latents given one "
        "of the three marked x,\na column each, and KL(q || true posterior) in nats.",
    )


def _draw_points(axes: Axes, points: Sequence[Row], sample: str) -> None:
    """Draw a sample; those of data and noises on one scale, set by the data."""
    own = [row for row in points if row["sample"] == sample]
    axes.plot(
        numbers(own, "first"),
        numbers(own, "second"),
        linestyle="none",
        marker=".",
        markersize=1.5,
        color=INK if sample == _LATENTS else PALE,
        markeredgewidth=0,
    )
    scale = [row for row in points if row["sample"] == (_LATENTS if sample == _LATENTS else _DATA)]
    limit = 1.1 * max(abs(v) for name in ("first", "second") for v in numbers(scale, name))
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
    axes.tick_params(labelsize=7)
    axes.set_title(sample, fontsize=9, loc="left")
    if sample == _DATA:
        for place, (a, b) in enumerate(LANDMARKS):
            axes.plot([a], [b], **_mark(place))


def _draw_density(axes: Axes, points: Sequence[Row]) -> None:
    """Draw a density known on a regular grid; every panel has a scale of its own."""
    first, second = (np.unique(numbers(points, name)) for name in ("z1", "z2"))
    image = np.zeros((len(second), len(first)))
    place = tuple(
        np.searchsorted(line, numbers(points, name))
        for line, name in ((second, "z2"), (first, "z1"))
    )
    image[place] = numbers(points, "density")
    axes.imshow(
        image,
        origin="lower",
        extent=(first[0], first[-1], second[0], second[-1]),
        cmap=_COLOURS,
        aspect="equal",
        interpolation="bilinear",
    )
    axes.tick_params(labelsize=7)


def _name(axes: Axes, method: str) -> None:
    axes.set_ylabel("z2", labelpad=1)
    axes.text(
        -0.45,
        0.5,
        method.replace(", ", ",\n"),
        transform=axes.transAxes,
        horizontalalignment="right",
        verticalalignment="center",
    )


def _mark(place: int) -> dict[str, Any]:
    """Return keyword arguments of matplotlib that mark a landmark."""
    colour, marker = _LANDMARK_LOOKS[place]
    return {"marker": marker, "color": colour, "markeredgecolor": INK, "markersize": 6}


def _divergence(rows: Sequence[Row], method: str, landmark: int) -> str:
    scores: list[Mapping[str, Scalar]] = [r for r in _of(rows, "scores") if r["method"] == method]
    return "".join(f"KL {value:.3f}" for value in numbers(scores, f"kl_{landmark}"))


def _of(rows: Sequence[Row], table: str) -> list[Row]:
    return [row for row in rows if row["table"] == table]

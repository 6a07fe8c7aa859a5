"""Models of one table side by side: how far behind the best, and pairs on which they differ."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from service.http.words import counted
from service.results.comparison_result import (
    ComparedEdgeRead,
    ComparedModelRead,
    ComparedPairRead,
)
from worker.artefacts.figures.drawing import (
    INK,
    NEGATIVE,
    PALE,
    POSITIVE,
    add_legend,
    add_title,
    label,
)

# More lines than these cannot be told apart on a page; tables have all.
_MOST_PAIRS = 40
_LINE_INCHES = 0.2
_WIDTH_INCHES = 4.6
_MODEL_INCHES = 1.15
_GAP_INCHES = 0.75
# Of a normal distribution; intervals are 95 %.
_QUANTILE = 1.96
# Names of models tell of their options.
_NAME_COLUMNS = 60


def draw_comparison(
    figure: Figure,
    models: Sequence[ComparedModelRead],
    disputed: Sequence[ComparedPairRead],
    title: str,
) -> None:
    """Draw by how much each model is behind the best, and below it the strongest disputed pairs."""
    shown = disputed[:_MOST_PAIRS]
    fitted = [model for model in models if model.fit is not None]
    width = max(_WIDTH_INCHES, _MODEL_INCHES * len(fitted) if shown else 0)
    heights = [_LINE_INCHES * len(models)]
    if shown:
        heights.append(_LINE_INCHES * len(shown))
    total = sum(heights) + _GAP_INCHES * (len(heights) - 1)
    figure.set_size_inches(width, total)
    _draw_models(figure.add_axes((0, 1 - heights[0] / total, 1, heights[0] / total)), models)
    if shown:
        share = heights[1] / total
        for place, model in enumerate(fitted):
            left, right = place / len(fitted), (place + 0.93) / len(fitted)
            axes = figure.add_axes((left, 0, right - left, share))
            _draw_pairs(axes, shown, place, has_names=place == 0)
            axes.set_title(f"{1 + models.index(model)}", fontsize=9)
        _share_scale(figure.axes[1:])
        add_legend(figure, _legend())
    drawn = f"; the {len(shown)} strongest are drawn" if len(shown) < len(disputed) else ""
    add_title(
        figure,
        title,
        "By how much held-out log densities are behind the best (± standard error, 95 % intervals)."
        f"\n{counted(len(disputed), 'pair')} that only some models select{drawn}.",
    )


def _draw_models(axes: Axes, models: Sequence[ComparedModelRead]) -> None:
    axes.axvline(0.0, color=PALE, linewidth=0.8)
    beside = axes.get_yaxis_transform()
    for place, model in enumerate(models):
        axes.text(1.02, place, _standing(model), transform=beside, fontsize=8, va="center")
        if model.behind is None or model.behind_standard_error is None:
            continue
        half = _QUANTILE * model.behind_standard_error
        axes.hlines(place, model.behind - half, model.behind + half, color=INK, linewidth=1.6)
        axes.plot(model.behind, place, "o", color=INK, markersize=5.5)
    names = [
        f"{place}  {label(model.name, _NAME_COLUMNS)}"
        for place, model in enumerate(models, start=1)
    ]
    axes.set_yticks(range(len(models)), names)
    axes.tick_params(axis="y", length=0)
    axes.set(ylim=(len(models) - 0.4, -0.6), xlabel="behind the best, nats per row")


def _standing(model: ComparedModelRead) -> str:
    if model.fit is None:
        return "failed"
    if model.behind is None or model.behind_standard_error is None:
        return "no density"
    if not model.behind and model.log_density is not None:
        return f"the best: {model.log_density:.5g}"
    return f"{model.behind:.3g} ± {model.behind_standard_error:.2g}"


def _draw_pairs(
    axes: Axes, pairs: Sequence[ComparedPairRead], model: int, *, has_names: bool
) -> None:
    axes.axvline(0.0, color=PALE, linewidth=0.8)
    for place, pair in enumerate(pairs):
        _draw_edge(axes, place, pair.edges[model])
    names = [f"{label(pair.source)} – {label(pair.target)}" for pair in pairs] if has_names else []
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0, labelsize=7)
    axes.tick_params(axis="x", labelsize=7)
    axes.set_ylim(len(pairs) - 0.4, -0.6)


def _draw_edge(axes: Axes, place: int, edge: ComparedEdgeRead) -> None:
    value = edge.partial_correlation if edge.debiased is None else edge.debiased
    if value is None:
        return
    colour = POSITIVE if value > 0 else NEGATIVE
    if edge.lower is not None and edge.upper is not None:
        axes.hlines(place, edge.lower, edge.upper, color=colour, linewidth=1.3)
    face = colour if edge.selected else "white"
    axes.plot(value, place, "o", color=colour, markerfacecolor=face, markersize=4.5)


def _share_scale(panels: Sequence[Axes]) -> None:
    limits = [panel.get_xlim() for panel in panels]
    low, high = min(low for low, _ in limits), max(high for _, high in limits)
    for panel in panels:
        panel.set_xlim(low, high)
        panel.locator_params(axis="x", nbins=3)
        panel.xaxis.set_major_formatter("{x:g}")
    panels[0].set_xlabel("partial correlation in each model", loc="left")


def _legend() -> list[Line2D]:
    def marked(text: str, colour: str, *, is_filled: bool) -> Line2D:
        face = colour if is_filled else "white"
        return Line2D([], [], color=colour, marker="o", markerfacecolor=face, label=text)

    return [
        marked("selected, positive", POSITIVE, is_filled=True),
        marked("selected, negative", NEGATIVE, is_filled=True),
        marked("not selected, in the colour of its sign", POSITIVE, is_filled=False),
    ]

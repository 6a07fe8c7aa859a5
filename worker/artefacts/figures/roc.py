"""ROC curves of edge recovery."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from service.results.vocabulary import EdgeScore
from vnce_engine.inference.metrics import EdgeROC
from worker.artefacts.figures.drawing import FAINT, SERIES, add_legend, add_title

SCORE_LABELS = {
    EdgeScore.ABS_PRECISION: "|K|",
    EdgeScore.PRECISION: "K",
    EdgeScore.ABS_SCALED_INTERACTION: "|scaled interaction|",
    EdgeScore.SCALED_INTERACTION: "scaled interaction",
}

_SIDE_INCHES = 3.8
_LINE_STYLES = ("-", (0, (5, 1.5)), (0, (2, 1.2)), (0, (6, 1.5, 1, 1.5)))


def draw_roc(figure: Figure, curves: Mapping[str, EdgeROC], title: str) -> None:
    """Draw up to four labelled curves; one that does not exist says why in the legend.

    All curves must be over the same pairs and the same truth.
    """
    figure.set_size_inches(_SIDE_INCHES, _SIDE_INCHES)
    axes = figure.add_axes((0, 0, 1, 1))
    looks = zip(SERIES, _LINE_STYLES, strict=True)
    for (name, curve), (colour, line_style) in zip(curves.items(), looks, strict=False):
        value = "undefined" if curve.auc is None else f"{curve.auc:.3f}"
        axes.plot(
            curve.fpr,
            curve.tpr,
            color=colour,
            linestyle=line_style,
            linewidth=1.8,
            label=f"{name}: AUC {value}",
            clip_on=False,
        )
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1, zorder=1, label="chance: AUC 0.500")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xlabel("false positive rate: absent edges ranked above the threshold")
    axes.set_ylabel("true positive rate: true edges so ranked")
    add_legend(figure, axes.get_lines())
    any_curve = next(iter(curves.values()))
    subtitle = f"{any_curve.num_edges} true edges among {any_curve.num_pairs} pairs"
    if any_curve.auc is None:
        subtitle += f"; no curve: {any_curve.reason}"
    add_title(figure, title, subtitle)

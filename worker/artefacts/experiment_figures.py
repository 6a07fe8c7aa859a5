"""The picture of an experiment, as SVG and PNG."""

from collections.abc import Callable, Sequence
from functools import partial

from matplotlib.figure import Figure

from service.results.formats import MediaType
from service.results.outcome import Artefact
from vnce_engine.experiments.experiment import Row, SummaryTable
from worker.artefacts.figures.drawing import render
from worker.artefacts.figures.experiments import (
    coverage,
    graph_recovery,
    mixture_em,
    mixture_population,
    posterior_toy,
)

Draw = Callable[[Figure, Sequence[Row], Sequence[SummaryTable]], None]

DRAWINGS: dict[str, Draw] = {
    "posterior-toy": posterior_toy.draw,
    "mixture-em": mixture_em.draw,
    "mixture-population": mixture_population.draw,
    "graph-recovery": graph_recovery.draw,
    "coverage": coverage.draw,
}


def draw_experiment(
    name: str, rows: Sequence[Row], tables: Sequence[SummaryTable]
) -> list[Artefact]:
    """Return the picture of the experiment of that name."""
    draw = partial(_draw, DRAWINGS[name], rows, tables)
    return [
        Artefact(f"figures/{name}.svg", MediaType.SVG, render(draw)),
        Artefact(f"figures/{name}.png", MediaType.PNG, render(draw, "png")),
    ]


def _draw(
    drawing: Draw, rows: Sequence[Row], tables: Sequence[SummaryTable], figure: Figure
) -> None:
    drawing(figure, rows, tables)

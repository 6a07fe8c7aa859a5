"""The picture of an experiment."""

from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from service.results.outcome import Artefact
from vnce_engine.experiments.experiment import Row, SummaryTable
from worker.artefacts.figures.drawing import figure_artefacts
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
    return figure_artefacts(name, lambda figure: DRAWINGS[name](figure, rows, tables))

"""Pictures of experiments: what they write, and that no row is needed for them to be drawn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from vnce_engine.experiments.coverage import Coverage
from vnce_engine.experiments.experiment import Experiment, Row, SummaryTable
from vnce_engine.experiments.graph_recovery import GraphRecovery
from vnce_engine.experiments.mixture_em import MixtureEm
from vnce_engine.experiments.mixture_population import MixturePopulation
from vnce_engine.experiments.posterior_toy import PosteriorToy
from worker.artefacts.figures.drawing import render
from worker.artefacts.figures.experiments import (
    coverage,
    graph_recovery,
    mixture_em,
    mixture_population,
    posterior_toy,
)

Draw = Callable[[Figure, Sequence[Row], Sequence[SummaryTable]], None]


@dataclass(frozen=True)
class Drawn:
    """An experiment's rows, all of its parts run, and how they are drawn."""

    experiment: Experiment
    draw: Draw
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, experiment: Experiment, draw: Draw) -> "Drawn":
        parts = range(len(experiment.parts()))
        return cls(experiment, draw, tuple(row for i in parts for row in experiment.run(i)))

    def svg(self, rows: Sequence[Row]) -> bytes:
        tables = self.experiment.summarise(rows)
        return render(lambda figure: self.draw(figure, rows, tables), ["svg"])["svg"]

    @cached_property
    def picture(self) -> bytes:
        """The picture of all rows."""
        return self.svg(self.rows)

    @cached_property
    def texts(self) -> list[str]:
        """What is written in it."""
        tags = ElementTree.fromstring(self.picture).iter("{http://www.w3.org/2000/svg}text")
        return ["".join(tag.itertext()) for tag in tags]


@pytest.fixture(scope="module")
def em() -> Drawn:
    return Drawn.of(MixtureEm(num_rows=100, num_pairs=3, grid=(2.0, 14.0, 13)), mixture_em.draw)


@pytest.fixture(scope="module")
def population() -> Drawn:
    experiment = MixturePopulation(num_truths=4, sample_sizes=(50, 100), batch=2)
    return Drawn.of(experiment, mixture_population.draw)


@pytest.fixture(scope="module")
def recovery() -> Drawn:
    experiment = GraphRecovery(
        fractions=(0.0, 0.5),
        num_data_sets=2,
        estimators=("nce-drop", "nce-mean"),
        num_columns=5,
        num_rows=40,
    )
    return Drawn.of(experiment, graph_recovery.draw)


@pytest.fixture(scope="module")
def intervals() -> Drawn:
    experiment = Coverage(
        graphs=("ring", "star"),
        sample_sizes=(80, 120),
        fractions=(0.2,),
        num_data_sets=1,
        num_columns=4,
    )
    return Drawn.of(experiment, coverage.draw)


@pytest.fixture(scope="module")
def toy() -> Drawn:
    return Drawn.of(PosteriorToy(num_rows=200, num_epochs=1, grid=(3.5, 11)), posterior_toy.draw)


@pytest.mark.slow
def test_toy_names_samples_methods_landmarks_and_divergences(toy: Drawn) -> None:
    written = toy.texts
    assert {"latents", "data", "good noise", "bad noise", "true posterior", "VI"} <= set(written)
    assert {"x = (0, 0)", "x = (1, 1)", "x = (-2, -2)"} <= set(written)
    (scores,) = toy.experiment.summarise(toy.rows)
    for row in scores.rows:
        for value in row[-3:]:
            assert f"KL {value:.3f}" in written


def test_em_has_a_panel_for_every_step_and_one_for_the_climb(em: Drawn) -> None:
    titles = {f"{kind}-step {pair}" for kind in "EM" for pair in (1, 2, 3)}
    written = em.texts
    assert titles <= set(written)
    assert any(text.startswith("J_NCE below its maximum") for text in written)


def test_population_prints_every_slope_with_its_error(population: Drawn) -> None:
    _, slopes = population.experiment.summarise(population.rows)
    written = " ".join(population.texts)
    for estimator, _, _, slope, se, _ in slopes.rows:
        assert f"{estimator}: slope {slope:.2f} ± {se:.2f}".replace("-", "−") in written


def test_recovery_names_estimators_by_their_titles(recovery: Drawn) -> None:
    written = recovery.texts
    assert {"NCE, mean-filled", "NCE, complete rows"} <= set(written)
    assert "Medians and quartiles over 2 data sets; the dotted line is chance." in written


def test_recovery_draws_relatives_side_by_side_and_the_one_named_first_thickest(
    recovery: Drawn,
) -> None:
    written = recovery.texts
    assert written.index("NCE, mean-filled") < written.index("NCE, complete rows")
    figure = Figure()
    graph_recovery.draw(figure, recovery.rows, recovery.experiment.summarise(recovery.rows))
    bars = figure.axes[0].containers
    widths = {line.get_label(): line.lines[0].get_linewidth() for line in bars}
    assert widths.pop("NCE, complete rows") > max(widths.values())


@pytest.mark.slow
def test_recovery_has_no_panel_of_times_without_a_clock(recovery: Drawn) -> None:
    assert "CPU seconds" not in recovery.texts
    timed = [{**row, "seconds": 0.5} for row in recovery.rows]
    assert b"CPU seconds" in recovery.svg(timed)


def test_coverage_has_a_panel_for_every_graph_and_linear_term(intervals: Drawn) -> None:
    written = intervals.texts
    assert {
        f"{graph}, h {linear}" for graph in ("ring", "star") for linear in ("zero", "free")
    } <= (set(written))
    assert {"edges, 20% missing", "other pairs, 20% missing", "80", "120"} <= set(written)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["toy", "population", "recovery", "intervals"])
def test_parts_that_failed_leave_a_picture_of_the_others(
    name: str, request: pytest.FixtureRequest
) -> None:
    drawn: Drawn = request.getfixturevalue(name)
    assert drawn.svg(drawn.experiment.run(0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["toy", "em", "population", "recovery", "intervals"])
def test_the_same_rows_give_the_same_bytes_and_leave_no_global_state(
    name: str, request: pytest.FixtureRequest
) -> None:
    drawn: Drawn = request.getfixturevalue(name)
    before = dict(mpl.rcParams)
    assert drawn.svg(drawn.rows) == drawn.picture
    assert dict(mpl.rcParams) == before

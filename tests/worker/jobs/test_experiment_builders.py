"""Experiments by their specifications, and how long they will take."""

import pytest

from service.jobs.specs.experiment import ExperimentSpec
from service.jobs.vocabulary import ExperimentName, ExperimentScale
from vnce_engine.experiments.coverage import Coverage
from vnce_engine.experiments.graph_recovery import GraphRecovery
from vnce_engine.experiments.mixture_population import MixturePopulation
from worker.artefacts.experiment_figures import DRAWINGS
from worker.cli.reproduce import estimate_seconds
from worker.jobs.experiment_builders import build_experiment


def body(name: str, scale: str = "quick", **choices: object) -> dict[str, object]:
    experiment = {"name": name, **choices}
    return {"kind": "experiment", "experiment": experiment, "scale": scale, "seed": 3}


def spec_of(request: dict[str, object]) -> ExperimentSpec:
    return ExperimentSpec.model_validate(request)


@pytest.mark.parametrize("name", list(ExperimentName))
def test_a_quick_experiment_is_much_shorter_and_is_estimated_at_two_minutes_on_two_cores(
    name: str,
) -> None:
    quick, full = (estimate_seconds(body(name, scale)) for scale in ExperimentScale)
    assert 0 < quick <= 240
    assert quick <= full


@pytest.mark.parametrize("name", list(ExperimentName))
def test_every_experiment_is_built_with_its_seed_and_has_a_picture(name: str) -> None:
    experiment = build_experiment(spec_of(body(name)))
    assert (experiment.name, experiment.seed) == (name, 3)
    assert name in DRAWINGS


def test_choices_change_single_sizes_of_an_experiment() -> None:
    population = build_experiment(
        spec_of(body("mixture-population", n_truths=7, sample_sizes=[50, 100]))
    )
    assert isinstance(population, MixturePopulation)
    assert (population.num_truths, population.sample_sizes) == (7, (50, 100))
    recovery = build_experiment(
        spec_of(body("graph-recovery", graphs=["hub"], fractions=[0.1], estimators=["vnce"]))
    )
    assert isinstance(recovery, GraphRecovery)
    assert len(recovery.parts()) == recovery.num_data_sets
    sizes = {"graphs": ["star"], "linears": ["free"], "sample_sizes": [50], "n_data_sets": 3}
    coverage = build_experiment(spec_of(body("coverage", **sizes, n_variables=5)))
    assert isinstance(coverage, Coverage)
    assert (coverage.graphs, coverage.linears, coverage.num_columns) == (("star",), ("free",), 5)
    assert (coverage.sample_sizes, coverage.num_data_sets) == ((50,), 3)

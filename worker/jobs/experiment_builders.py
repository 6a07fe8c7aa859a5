"""From an experiment's specification to the engine's experiment."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, assert_never

from service.jobs.specs.base import planned
from service.jobs.specs.experiment import (
    CoverageSpec,
    ExperimentPartSpec,
    ExperimentSpec,
    GraphRecoverySpec,
    MixtureEmSpec,
    MixturePopulationSpec,
    PosteriorToySpec,
)
from service.jobs.vocabulary import ExperimentScale
from vnce_engine.experiments.coverage import Coverage
from vnce_engine.experiments.experiment import Experiment
from vnce_engine.experiments.graph_recovery import GraphRecovery
from vnce_engine.experiments.mixture_em import MixtureEm
from vnce_engine.experiments.mixture_population import MixturePopulation
from vnce_engine.experiments.posterior_toy import PosteriorToy
from vnce_engine.runtime.checkpoint import Checkpoint


def build_experiment(
    spec: ExperimentSpec | ExperimentPartSpec, checkpoint: Checkpoint | None = None
) -> Experiment:
    """Return the experiment that the spec, or one of a part of it, describes.

    The `checkpoint` is that of an interrupted run of the part; parts of graph recovery and
    coverage, which may take minutes, go on from it.
    """
    is_quick, seed = spec.scale is ExperimentScale.QUICK, planned(spec.seed)
    match spec.experiment:
        case PosteriorToySpec():
            return PosteriorToy.quick(seed) if is_quick else PosteriorToy(seed=seed)
        case MixtureEmSpec():
            return MixtureEm(seed=seed)
        case MixturePopulationSpec() as choice:
            population = MixturePopulation.quick(seed) if is_quick else MixturePopulation(seed=seed)
            return replace(
                population,
                **_chosen(
                    num_truths=choice.n_truths,
                    sample_sizes=_several(choice.sample_sizes),
                ),
            )
        case GraphRecoverySpec() as choice:
            recovery = GraphRecovery.quick(seed) if is_quick else GraphRecovery(seed=seed)
            return replace(
                recovery,
                **_chosen(
                    graphs=_several(choice.graphs),
                    fractions=_several(choice.fractions),
                    num_data_sets=choice.n_data_sets,
                    estimators=_several(choice.estimators),
                    clock=time.process_time,
                    checkpoint=checkpoint,
                ),
            )
        case CoverageSpec() as choice:
            coverage = Coverage.quick(seed) if is_quick else Coverage(seed=seed)
            return replace(
                coverage,
                **_chosen(
                    graphs=_several(choice.graphs),
                    linears=_several(choice.linears),
                    sample_sizes=_several(choice.sample_sizes),
                    fractions=_several(choice.fractions),
                    num_data_sets=choice.n_data_sets,
                    num_columns=choice.n_variables,
                    clock=time.process_time,
                    checkpoint=checkpoint,
                ),
            )
        case _ as unknown:
            assert_never(unknown)


def _several(values: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """Return values as the engine takes them: words are plain strings there."""
    if values is None:
        return None
    return tuple(str(value) if isinstance(value, str) else value for value in values)


def _chosen(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}

"""From an experiment's specification to the engine's experiment."""

import time
from dataclasses import replace
from typing import Any, assert_never

from service.jobs.specs.base import planned
from service.jobs.specs.experiment import (
    ExperimentPartSpec,
    ExperimentSpec,
    GraphRecoverySpec,
    MixtureEmSpec,
    MixturePopulationSpec,
    PosteriorToySpec,
)
from service.jobs.vocabulary import ExperimentScale
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

    The `checkpoint` is that of an interrupted run of the part; parts of graph recovery, which may
    take minutes, go on from it.
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
                    sample_sizes=None
                    if choice.sample_sizes is None
                    else tuple(choice.sample_sizes),
                ),
            )
        case GraphRecoverySpec() as choice:
            recovery = GraphRecovery.quick(seed) if is_quick else GraphRecovery(seed=seed)
            return replace(
                recovery,
                **_chosen(
                    graphs=_texts(choice.graphs),
                    fractions=None if choice.fractions is None else tuple(choice.fractions),
                    num_data_sets=choice.n_data_sets,
                    estimators=_texts(choice.estimators),
                    clock=time.process_time,
                    checkpoint=checkpoint,
                ),
            )
        case _ as unknown:
            assert_never(unknown)


def _texts(words: list[Any] | None) -> tuple[str, ...] | None:
    return None if words is None else tuple(str(word) for word in words)


def _chosen(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}

"""All files that a finished estimation leaves."""

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from service.jobs.specs.base import planned
from service.jobs.specs.contrastive import ContrastiveSpec
from service.results.outcome import Artefact
from service.results.vocabulary import EdgeRule
from vnce_engine.estimators.base import NetworkEstimator
from worker.artefacts.exports.completed import (
    CompletedColumns,
    imputation_artefacts,
    multiple_imputation_artefacts,
)
from worker.artefacts.exports.graph import graph_artefacts
from worker.artefacts.exports.objective import objective_artefact
from worker.artefacts.exports.roc import adjacency, roc_artefacts
from worker.artefacts.exports.tables import (
    matrix_artefacts,
    partial_correlation_artefacts,
)
from worker.artefacts.figures.centrality import draw_centrality
from worker.artefacts.figures.drawing import figure_artefacts, label
from worker.artefacts.figures.heatmap import draw_heatmap
from worker.artefacts.figures.intervals import draw_intervals
from worker.artefacts.figures.network import network_figures
from worker.artefacts.figures.objective import draw_objective
from worker.artefacts.figures.roc import SCORE_LABELS, draw_roc
from worker.artefacts.fitted import FittedNetwork
from worker.artefacts.variables import variables_artefact

Maker = Callable[[FittedNetwork], Iterable[Artefact]]


def _precision(fitted: FittedNetwork) -> Iterable[Artefact]:
    matrix, transform = fitted.estimator.precision_, fitted.transform
    return matrix_artefacts("precision", _names(fitted), matrix, transform)


def _partial_correlations(fitted: FittedNetwork) -> Iterable[Artefact]:
    matrix, transform = fitted.estimator.partial_correlation_, fitted.transform
    return partial_correlation_artefacts(_names(fitted), matrix, transform, fitted.reason)


def mean_imputations(fitted: FittedNetwork) -> Iterable[Artefact]:
    """Return the table with every missing cell at its mean."""
    completed = fitted.estimator.impute(fitted.table)
    return imputation_artefacts(_completed_columns(fitted), completed)


def multiple_imputations(fitted: FittedNetwork) -> Iterable[Artefact]:
    """Yield completed tables; nothing where none were asked for, or warnings say why none are."""
    spec, estimator = fitted.spec, fitted.estimator
    if spec.imputations is None or not estimator.diagnostics_.is_positive_definite:
        return
    seed = planned(spec.seed)
    tables = estimator.iterate_imputations(fitted.table, spec.imputations, random_state=seed)
    yield from multiple_imputation_artefacts(_completed_columns(fitted), tables)


def _graph(fitted: FittedNetwork) -> Iterable[Artefact]:
    rule, threshold = EdgeRule(fitted.estimator.edge_rule_), fitted.spec.edge_threshold
    return graph_artefacts(_names(fitted), fitted.edges, rule, threshold)


def _variables(fitted: FittedNetwork) -> Iterable[Artefact]:
    """Yield the table, and the figure where something is known of a variable."""
    yield variables_artefact(fitted.variables)
    if any(
        one.strength or one.expected_influence or one.predictability for one in fitted.variables
    ):
        title = f"Centrality: {_about(fitted)}"
        draw = partial(draw_centrality, variables=fitted.variables, title=title)
        yield from figure_artefacts("centrality", draw)


def _objective(fitted: FittedNetwork) -> Iterable[Artefact]:
    estimator = fitted.estimator
    yield objective_artefact(estimator.objective_path_, estimator.noise_starts_)
    draw = partial(
        draw_objective,
        objective=estimator.objective_path_,
        title=f"Objective: {_about(fitted)}",
        subtitle=_about_objective(estimator),
        name=estimator.objective_name_,
        starts=estimator.noise_starts_,
    )
    yield from figure_artefacts("objective", draw)


def _network_figures(fitted: FittedNetwork) -> Iterable[Artefact]:
    return network_figures(
        _names(fitted),
        fitted.edges,
        rule=_rule(fitted),
        truth=fitted.truth,
        title=f"Network: {_about(fitted)}",
        reason=fitted.reason,
    )


def _rule(fitted: FittedNetwork) -> str:
    """Return what pairs have that are selected."""
    match EdgeRule(fitted.estimator.edge_rule_), fitted.spec.estimator:
        case EdgeRule.FALSE_DISCOVERY_RATE, ContrastiveSpec(fdr=rate):
            return f"q ≤ {rate:g}"
        case _:
            return f"|partial correlation| ≥ {fitted.spec.edge_threshold:g}"


def _heatmap(fitted: FittedNetwork) -> Iterable[Artefact]:
    measure = "partial correlation" if fitted.reason is None else "scaled interaction"
    selected = ((edge.source, edge.target) for edge in fitted.edges if edge.selected)
    draw = partial(
        draw_heatmap,
        names=_names(fitted),
        interaction=fitted.estimator.scaled_interaction_,
        selected=adjacency(_names(fitted), selected),
        title=f"{measure.capitalize()}s: {_about(fitted)}",
        measure=measure,
    )
    yield from figure_artefacts("heatmap", draw)


def _intervals(fitted: FittedNetwork) -> Iterable[Artefact]:
    """Yield nothing where no edge has an interval."""
    if any(edge.debiased is not None for edge in fitted.edges):
        draw = partial(
            draw_intervals,
            edges=fitted.edges,
            edge_threshold=fitted.spec.edge_threshold,
            title=f"95 % intervals: {_about(fitted)}",
        )
        yield from figure_artefacts("intervals", draw)


def _roc(fitted: FittedNetwork) -> Iterable[Artefact]:
    """Yield nothing where no true graph is known."""
    if fitted.roc_curves is not None:
        yield from roc_artefacts(fitted.roc_curves)
        curves = {SCORE_LABELS[score]: curve for score, curve in fitted.roc_curves.items()}
        draw = partial(draw_roc, curves=curves, title=f"Edge recovery: {_about(fitted)}")
        yield from figure_artefacts("roc", draw)


# Each makes some of the files; together they make all that a result has.
MAKERS: tuple[Maker, ...] = (
    _precision,
    _partial_correlations,
    mean_imputations,
    multiple_imputations,
    _graph,
    _variables,
    _objective,
    _network_figures,
    _heatmap,
    _intervals,
    _roc,
)


def _completed_columns(fitted: FittedNetwork) -> CompletedColumns:
    return CompletedColumns(_names(fitted), ~np.isnan(fitted.X), fitted.texts)


def _names(fitted: FittedNetwork) -> list[str]:
    return planned(fitted.spec.variables)


def _about(fitted: FittedNetwork) -> str:
    return f"{label(fitted.dataset_name)}, {fitted.spec.estimator.kind.upper()}"


def _about_objective(estimator: NetworkEstimator) -> str:
    ending = f"{estimator.status_} after {estimator.n_iter_} iterations"
    return f"{ending}; new noise at each break" if estimator.noise_starts_ else ending

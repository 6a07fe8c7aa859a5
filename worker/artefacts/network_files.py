"""All files that a finished estimation leaves."""

from collections.abc import Iterator

import numpy as np

from service.jobs.specs.base import planned
from service.results.formats import MediaType
from service.results.outcome import Artefact
from service.results.vocabulary import Figure
from worker.artefacts.exports.graph import graph_artefacts
from worker.artefacts.exports.objective import objective_artefact
from worker.artefacts.exports.roc import roc_artefacts
from worker.artefacts.exports.tables import (
    imputation_artefacts,
    matrix_artefacts,
    partial_correlation_artefacts,
)
from worker.artefacts.figures.drawing import label
from worker.artefacts.figures.heatmap import heatmap_svg
from worker.artefacts.figures.network import network_svg
from worker.artefacts.figures.objective import objective_svg
from worker.artefacts.figures.roc import SCORE_LABELS, roc_svg
from worker.artefacts.fitted import Estimator, FittedNetwork


def make_artefacts(fitted: FittedNetwork) -> Iterator[Artefact]:
    """Yield every file of the result; `result_files.file_names` lists their names."""
    spec, estimator = fitted.spec, fitted.estimator
    names, transform = planned(spec.variables), spec.model.transform
    yield from matrix_artefacts("precision", names, estimator.precision_, transform)
    yield from partial_correlation_artefacts(
        names, estimator.partial_correlation_, transform, fitted.reason
    )
    yield from imputation_artefacts(names, fitted.completed, ~np.isnan(fitted.X))
    yield from graph_artefacts(names, fitted.edges, spec.edge_threshold)
    yield objective_artefact(estimator.objective_path_, estimator.noise_starts_)
    yield from _figures(fitted)
    if fitted.roc_curves is not None:
        yield from roc_artefacts(fitted.roc_curves)


def _figures(fitted: FittedNetwork) -> Iterator[Artefact]:
    spec, estimator = fitted.spec, fitted.estimator
    about = f"{label(fitted.dataset_name)}, {spec.estimator.kind.upper()}"
    measure = "partial correlation" if fitted.reason is None else "scaled interaction"
    yield _picture(
        Figure.NETWORK,
        network_svg(
            planned(spec.variables),
            fitted.edges,
            edge_threshold=spec.edge_threshold,
            truth=fitted.truth,
            title=f"Network: {about}",
            reason=fitted.reason,
        ),
    )
    yield _picture(
        Figure.HEATMAP,
        heatmap_svg(
            planned(spec.variables),
            estimator.scaled_interaction_,
            title=f"{measure.capitalize()}s: {about}",
            measure=measure,
        ),
    )
    yield _picture(
        Figure.OBJECTIVE,
        objective_svg(
            estimator.objective_path_,
            f"Objective: {about}",
            _about_objective(estimator),
            estimator.objective_name_,
            estimator.noise_starts_,
        ),
    )
    if fitted.roc_curves is not None:
        curves = {SCORE_LABELS[score]: curve for score, curve in fitted.roc_curves.items()}
        yield _picture(Figure.ROC, roc_svg(curves, f"Edge recovery: {about}"))


def _picture(figure: Figure, svg: bytes) -> Artefact:
    return Artefact(f"figures/{figure}.svg", MediaType.SVG, svg)


def _about_objective(estimator: Estimator) -> str:
    ending = f"{estimator.status_} after {estimator.n_iter_} iterations"
    return f"{ending}; new noise at each break" if estimator.noise_starts_ else ending

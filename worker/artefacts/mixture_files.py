"""All files that a finished estimation of the mixture leaves."""

from io import BytesIO

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pyarrow import parquet

from service.jobs.specs.base import planned
from service.jobs.specs.mixture import MixtureEstimationSpec
from service.results.formats import MediaType
from service.results.outcome import Artefact
from vnce_engine.experiments.mixture.fit import MixtureFit
from worker.artefacts.exports.csv_text import csv_bytes
from worker.artefacts.exports.objective import objective_artefact
from worker.artefacts.figures.drawing import figure_artefacts, label
from worker.artefacts.figures.mixture import draw_mixture
from worker.artefacts.figures.objective import draw_objective

FloatArray = NDArray[np.float64]


def mixture_artefacts(
    spec: MixtureEstimationSpec,
    fit: MixtureFit,
    x: FloatArray,
    rows: NDArray[np.int64],
    dataset_name: str,
) -> list[Artefact]:
    """Return tables of responsibilities, the objective's path and pictures.

    `x` (n,) are the values that were fitted and `rows` their rows in the data set, from 1.
    """
    [name] = planned(spec.variables)
    about = f"{label(dataset_name)}, {spec.estimator.kind.upper()}"
    ending = f"{fit.status} after {len(fit.objective_path)} iterations"

    def objective(figure: Figure) -> None:
        draw_objective(figure, fit.objective_path, f"Objective: {about}", ending)

    def density(figure: Figure) -> None:
        weight, sigma_1 = fit.known_weight, spec.model.sigma_1
        draw_mixture(figure, x, fit.theta, sigma_1, weight, name, about)

    return [
        *responsibility_artefacts(rows, x, fit.responsibilities),
        objective_artefact(fit.objective_path),
        *figure_artefacts("objective", objective),
        *figure_artefacts("density", density),
    ]


def responsibility_artefacts(
    rows: NDArray[np.int64], x: FloatArray, known: FloatArray
) -> list[Artefact]:
    """Return `responsibilities`.csv and .parquet: row, value, probability of each component."""
    columns = {"row": rows, "value": x, "known": known, "free": 1 - known}
    lines = zip(*(column.tolist() for column in columns.values()), strict=True)
    content = BytesIO()
    parquet.write_table(pa.table(columns), content)
    return [
        Artefact("responsibilities.csv", MediaType.CSV, csv_bytes(list(columns), lines)),
        Artefact("responsibilities.parquet", MediaType.PARQUET, content.getvalue()),
    ]

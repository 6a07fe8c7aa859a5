"""The objective at every iteration as a CSV file."""

import math
from collections.abc import Sequence

from service.results.formats import MediaType
from service.results.outcome import Artefact
from worker.exports.csv_text import csv_bytes


def objective_artefact(objective: Sequence[float]) -> Artefact:
    """Return `objective.csv`: the iteration, from 1, and the value; empty where not finite."""
    rows = (
        [iteration, value if math.isfinite(value) else None]
        for iteration, value in enumerate(objective, start=1)
    )
    return Artefact("objective.csv", MediaType.CSV, csv_bytes(["iteration", "objective"], rows))

"""The objective at every iteration as a CSV file."""

import math
from bisect import bisect_right
from collections.abc import Sequence

from service.results.formats import MediaType
from service.results.outcome import Artefact
from worker.artefacts.exports.csv_text import csv_bytes


def objective_artefact(objective: Sequence[float], starts: Sequence[int] = ()) -> Artefact:
    """Return `objective.csv`: the iteration, from 1, the value, and which noise it is of, from 1.

    A value that is not finite is left empty. Noise is another from each position among `starts`.
    """
    rows = (
        [1 + position, value if math.isfinite(value) else None, 1 + bisect_right(starts, position)]
        for position, value in enumerate(objective)
    )
    header = ["iteration", "objective", "noise"]
    return Artefact("objective.csv", MediaType.CSV, csv_bytes(header, rows))

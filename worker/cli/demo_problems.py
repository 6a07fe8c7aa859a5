"""The two tables of the demo: measured proteins and a simulated ring, both with holes."""

import csv
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)
from worker.artefacts.exports.csv_text import csv_bytes
from worker.artefacts.ground_truth import Pair, moral_graph, pair

# Chosen before any result was seen, for every draw of the demo; never changed for one.
SEED = 0
SACHS_MISSING = 0.25
RING_VARIABLES = 20
RING_ROWS = 1000
RING_MISSING = 0.30


@dataclass(frozen=True)
class DemoProblem:
    """A table with holes whose true graph is known, or accepted."""

    key: str
    title: str
    # The table as a CSV file: an empty cell is missing.
    content: bytes
    truth: frozenset[Pair]
    transform: str
    # What the scores can and cannot say.
    remark: str


def sachs_problem() -> DemoProblem:
    """Return the protein table, a quarter of its cells blanked completely at random.

    It is scored against the moral graph of the accepted network: see `worker/data/README.md`.
    """
    header, *rows = _read_data("sachs.csv")
    _, *edges = _read_data("sachs_consensus_edges.csv")
    X = np.array(rows, dtype=np.float64)
    masked = mask_completely_at_random(X, SACHS_MISSING, np.random.default_rng(SEED))
    return DemoProblem(
        key="sachs",
        title="Sachs et al. (2005): 853 cells, 11 proteins, 25 % of the values blanked",
        content=_csv_with_gaps(header, masked),
        truth=moral_graph((cause, effect) for cause, effect in edges),
        transform="cbrt",
        remark="Edges are ranked by |scaled interaction|; K depends on the columns' units. The "
        "accepted network is what the literature agrees on, not what these cells must show.",
    )


def ring_problem() -> DemoProblem:
    """Return a sample from a ring, 30 % of its cells blanked: graph, sample, gaps in this order."""
    rng = np.random.default_rng(SEED)
    precision = ring_precision(RING_VARIABLES, rng)
    X = sample_truncated_gaussian(precision, RING_ROWS, rng)
    masked = mask_completely_at_random(X, RING_MISSING, rng)
    names = [f"x{i:02d}" for i in range(1, RING_VARIABLES + 1)]
    linked = zip(names, [*names[1:], names[0]], strict=True)
    return DemoProblem(
        key="ring",
        title="Simulated ring: 1000 rows, 20 variables, 30 % of the values blanked",
        content=_csv_with_gaps(names, masked),
        truth=frozenset(pair(*ends) for ends in linked),
        transform="none",
        remark="Edges are ranked by |scaled interaction|. All true edges have K > 0 here, so that "
        "ranking by K itself uses their sign, which is unknown with real data.",
    )


def _read_data(name: str) -> list[list[str]]:
    text = files("worker").joinpath("data", name).read_text(encoding="utf-8")
    return list(csv.reader(text.splitlines()))


def _csv_with_gaps(names: list[str], X: NDArray[np.float64]) -> bytes:
    rows = ([None if np.isnan(value) else value for value in row] for row in X.tolist())
    return csv_bytes(names, rows)

"""Files of a difference: a line each pair as CSV and Parquet, and a picture; a part's networks."""

from collections.abc import Sequence
from functools import partial
from io import BytesIO

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from service.results.difference_result import DifferenceEdgeRead
from service.results.formats import MediaType
from service.results.outcome import Artefact
from vnce_engine.inference.differences import NetworkPair
from vnce_engine.inference.resamples import Failure
from worker.artefacts.exports.csv_text import csv_bytes
from worker.artefacts.figures.difference import draw_difference
from worker.artefacts.figures.drawing import figure_artefacts

PERMUTATIONS = "permutations.parquet"

_NUMBERS = pa.list_(pa.float64())
_ESTIMATES = ("debiased", "standard_error", "num_pairwise")
# A row each permutation: its number, and why it has no networks, or of all pairs what the first
# network has, and then what the second has, null where not known.
_SCHEMA = pa.schema(
    [("number", pa.int64()), ("failure", pa.string()), *((name, _NUMBERS) for name in _ESTIMATES)]
)
_TYPES = {"source": pa.string(), "target": pa.string(), "differs": pa.bool_()}


def permutations_artefact(first: int, outcomes: Sequence[NetworkPair | Failure]) -> Artefact:
    """Return the permutations of a part, numbered from `first`."""
    rows = [
        {"number": number, "failure": one.cause}
        if isinstance(one, Failure)
        else {"number": number}
        | {name: pa.array(getattr(one, name).ravel(), from_pandas=True) for name in _ESTIMATES}
        for number, one in enumerate(outcomes, start=first)
    ]
    table = pa.Table.from_pylist(rows, schema=_SCHEMA)
    return Artefact(PERMUTATIONS, MediaType.PARQUET, _parquet(table))


def read_permutations(content: bytes) -> dict[int, NetworkPair | Failure]:
    """Return the permutations of a part again, by their numbers."""
    table = parquet.read_table(BytesIO(content), schema=_SCHEMA)
    return {
        row["number"]: NetworkPair(
            *(np.array(row[name], dtype=np.float64).reshape(2, -1) for name in _ESTIMATES)
        )
        if row["failure"] is None
        else Failure(row["failure"])
        for row in table.to_pylist()
    }


def difference_artefacts(
    edges: Sequence[DifferenceEdgeRead], labels: tuple[str, str], fdr: float, title: str
) -> list[Artefact]:
    """Return `difference`.csv and .parquet, a line each pair, and the picture."""
    lines = [edge.model_dump() for edge in edges]
    names = list(DifferenceEdgeRead.model_fields)
    schema = pa.schema([(name, _TYPES.get(name, pa.float64())) for name in names])
    table = pa.Table.from_pylist(lines, schema=schema)
    draw = partial(draw_difference, edges=edges, labels=labels, fdr=fdr, title=title)
    return [
        Artefact(
            "difference.csv", MediaType.CSV, csv_bytes(names, ([*one.values()] for one in lines))
        ),
        Artefact("difference.parquet", MediaType.PARQUET, _parquet(table)),
        *figure_artefacts("difference", draw),
    ]


def _parquet(table: pa.Table) -> bytes:
    content = BytesIO()
    parquet.write_table(table, content)
    return content.getvalue()

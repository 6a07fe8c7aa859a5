"""Files of a bootstrap: a line each pair as CSV and Parquet, pictures; resamples of a part."""

from collections.abc import Sequence
from functools import partial
from io import BytesIO

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from service.results.bootstrap_result import (
    BootstrapEdgeRead,
    CorrelationStabilityRead,
    SpreadRead,
)
from service.results.formats import MediaType
from service.results.outcome import Artefact
from vnce_engine.inference.resamples import Failure, Network
from worker.artefacts.exports.csv_text import csv_bytes
from worker.artefacts.figures.bootstrap import draw_bootstrap
from worker.artefacts.figures.drawing import figure_artefacts
from worker.artefacts.figures.stability import draw_stability

RESAMPLES, SUBSETS = "resamples.parquet", "subsets.parquet"

_NUMBERS = pa.list_(pa.float64())
# A row each resample: its number, and why it has no network, or of all pairs what it has, null
# where not known.
_SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("failure", pa.string()),
        ("partial_correlation", _NUMBERS),
        ("debiased", _NUMBERS),
        ("selected", _NUMBERS),
    ]
)
_OF_PAIRS = _SCHEMA.names[2:]


def resamples_artefact(name: str, first: int, outcomes: Sequence[Network | Failure]) -> Artefact:
    """Return the resamples of a part, numbered from `first`, for the job that puts them together.

    Its `name` is that of resamples or of subsets.
    """
    rows = [
        {"number": number, "failure": one.cause}
        if isinstance(one, Failure)
        else {"number": number}
        | {field: pa.array(getattr(one, field), from_pandas=True) for field in _OF_PAIRS}
        for number, one in enumerate(outcomes, start=first)
    ]
    return Artefact(name, MediaType.PARQUET, _parquet(pa.Table.from_pylist(rows, schema=_SCHEMA)))


def read_resamples(content: bytes) -> dict[int, Network | Failure]:
    """Return the resamples of a part again, by their numbers."""
    table = parquet.read_table(BytesIO(content), schema=_SCHEMA)
    return {
        row["number"]: Network(*(np.array(row[name], dtype=np.float64) for name in _OF_PAIRS))
        if row["failure"] is None
        else Failure(row["failure"])
        for row in table.to_pylist()
    }


def stability_artefacts(stability: CorrelationStabilityRead, title: str) -> list[Artefact]:
    """Return `stability.csv`, a line each share of the rows left out, and the picture."""
    columns: dict[str, Sequence[float | None]] = {
        name: getattr(stability, name) for name in ("dropped", "n_requested", "n_ok")
    }
    for name in ("edges", "strength", "expected_influence"):
        for field in ("mean", "lower", "agreeing"):
            columns[f"{name}_{field}"] = getattr(getattr(stability, name), field)
    lines = zip(*columns.values(), strict=True)
    draw = partial(draw_stability, stability=stability, title=title)
    return [
        Artefact("stability.csv", MediaType.CSV, csv_bytes(list(columns), lines)),
        *figure_artefacts("stability", draw),
    ]


def bootstrap_artefacts(edges: Sequence[BootstrapEdgeRead], title: str) -> list[Artefact]:
    """Return `bootstrap`.csv and .parquet, a line each pair, and the picture."""
    lines = [_line(edge) for edge in edges]
    schema = pa.schema([(name, _type(name)) for name in lines[0]])
    table = pa.Table.from_pylist(lines, schema=schema)
    content = csv_bytes(schema.names, ([*line.values()] for line in lines))
    draw = partial(draw_bootstrap, edges=edges, title=title)
    return [
        Artefact("bootstrap.csv", MediaType.CSV, content),
        Artefact("bootstrap.parquet", MediaType.PARQUET, _parquet(table)),
        *figure_artefacts("bootstrap", draw),
    ]


def _line(edge: BootstrapEdgeRead) -> dict[str, str | float | bool | None]:
    return {
        "source": edge.source,
        "target": edge.target,
        "selected": edge.selected,
        "inclusion": edge.inclusion,
        **_fields("partial_correlation", edge.partial_correlation),
        **_fields("debiased", edge.debiased),
    }


def _fields(name: str, spread: SpreadRead) -> dict[str, float | None]:
    return {f"{name}_{field}": value for field, value in spread.model_dump().items()}


def _type(column: str) -> pa.DataType:
    match column.rpartition("_")[2]:
        case "source" | "target":
            return pa.string()
        case "selected":
            return pa.bool_()
        case "n":
            return pa.int64()
        case _:
            return pa.float64()


def _parquet(table: pa.Table) -> bytes:
    content = BytesIO()
    parquet.write_table(table, content)
    return content.getvalue()

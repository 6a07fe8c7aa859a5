"""Formats of downloads, and which one a client gets."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar, assert_never

from service.http.problems import ProblemCode, ProblemError


class MediaType(StrEnum):
    """What a file of a result is sent as; the worker stores it with the file."""

    JSON = "application/json"
    CSV = "text/csv"
    NPY = "application/x-npy"
    PARQUET = "application/vnd.apache.parquet"
    GRAPHML = "application/graphml+xml"
    GEXF = "application/gexf+xml"
    GML = "text/x-gml"
    DOT = "text/vnd.graphviz"
    SVG = "image/svg+xml"
    PNG = "image/png"


class TableFormat(StrEnum):
    """Formats of matrices and tables."""

    CSV = "csv"
    NPY = "npy"
    PARQUET = "parquet"


class GraphFormat(StrEnum):
    """Formats of graphs; of those in JSON the first is what `Accept: application/json` gets."""

    JSON = "json"
    GRAPHML = "graphml"
    CSV = "csv"
    GEXF = "gexf"
    GML = "gml"
    DOT = "dot"
    CYJS = "cyjs"
    CX2 = "cx2"


Format = TypeVar("Format", TableFormat, GraphFormat)


def media_type(wanted: TableFormat | GraphFormat) -> MediaType:
    """Return the media type that a format is sent as."""
    match wanted:
        case TableFormat.CSV | GraphFormat.CSV:
            return MediaType.CSV
        case TableFormat.NPY:
            return MediaType.NPY
        case TableFormat.PARQUET:
            return MediaType.PARQUET
        case GraphFormat.JSON | GraphFormat.CYJS | GraphFormat.CX2:
            return MediaType.JSON
        case GraphFormat.GRAPHML:
            return MediaType.GRAPHML
        case GraphFormat.GEXF:
            return MediaType.GEXF
        case GraphFormat.GML:
            return MediaType.GML
        case GraphFormat.DOT:
            return MediaType.DOT
        case _ as unknown:
            assert_never(unknown)


def choose(offered: Sequence[Format], accept: str | None) -> Format:
    """Return the format that an `Accept` header likes best; of equals the first offered.

    Raises `ProblemError` if it likes none.
    """
    if accept is None:
        return offered[0]
    ranges = [_media_range(text) for text in accept.split(",")]
    liking = {wanted: _quality(media_type(wanted), ranges) for wanted in offered}
    best = max(offered, key=lambda wanted: liking[wanted])
    if liking[best] == 0:
        types = ", ".join(dict.fromkeys(media_type(wanted) for wanted in offered))
        raise ProblemError(
            ProblemCode.NOT_ACCEPTABLE, f"It is available as {types}; or name it by ?format=."
        )
    return best


def _media_range(text: str) -> tuple[str, float]:
    """Return a range such as `text/*` and its quality, from 0 to 1."""
    name, *parameters = (part.strip().lower() for part in text.split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return name, float(parameter[2:])
            except ValueError:
                return name, 0.0
    return name, 1.0


def _quality(offered: str, ranges: Sequence[tuple[str, float]]) -> float:
    """Return how well the ranges like a type; the most specific range decides."""
    group = offered.partition("/")[0]
    for candidate in (offered, f"{group}/*", "*/*"):
        for name, quality in ranges:
            if name == candidate:
                return quality
    return 0.0

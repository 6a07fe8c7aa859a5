"""The undirected graph that a data set is known to have: what is stored of what was sent."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Annotated, assert_never

from pydantic import Field
from typing_extensions import TypedDict

from service.datasets.graph_documents import (
    MOST_EDGES,
    AdjacencyCreate,
    EdgeListCreate,
    GroundTruthCreate,
)
from service.datasets.readers.names import clean_name
from service.datasets.readers.refusals import shorten
from service.datasets.schemas import DatasetModel
from service.http.problems import ProblemCode, ProblemError, ProblemItem
from service.http.words import counted

# A graph of a million faults is not answered by a million complaints.
_MOST_FAULTS = 100


class TruthEdgeRead(TypedDict):
    """An undirected edge of a stored graph."""

    source: Annotated[
        str, Field(description="Name of the variable that comes first in the data set.")
    ]
    target: Annotated[str, Field(description="Name of the other variable.")]


class GroundTruthRead(DatasetModel):
    """A stored graph."""

    dataset_id: str = Field(description="Data set that it belongs to.")
    created_at: datetime = Field(description="When it was attached, UTC.")
    n_edges: int = Field(ge=0, description="Number of edges.")
    n_pairs: int = Field(ge=0, description="Number of pairs of variables, joined or not.")
    edges: list[TruthEdgeRead] = Field(description="Each pair once, in the data set's order.")


def canonical_edges(
    document: GroundTruthCreate, names: Sequence[str], place: str = ""
) -> list[list[str]]:
    """Return the edges in the order of `names`, each pair once and ordered alike.

    `place` is the JSON pointer to the graph in the request's body. Raises `ProblemError` that lists
    the first faults: unknown names, self-loops, repeated pairs; a matrix that is not square,
    symmetric and without a diagonal; more edges than `MOST_EDGES`.
    """
    match document:
        case EdgeListCreate():
            pairs, faults = _pairs_of_edges(document, names)
        case AdjacencyCreate():
            pairs, faults = _pairs_of_matrix(document, names)
        case _:
            assert_never(document)
    if len(pairs) > MOST_EDGES and not faults:
        message = f"The graph has {len(pairs)} edges; {MOST_EDGES} are allowed."
        faults = [ProblemItem(message=message, pointer="/matrix")]
    if faults:
        few = len(faults) < _MOST_FAULTS
        number = counted(len(faults), "fault") if few else f"{_MOST_FAULTS} or more faults"
        raise ProblemError(
            ProblemCode.VALIDATION_FAILED,
            f"{number} in the graph, the first: {faults[0].message}",
            errors=[_within(place, fault) for fault in faults[:_MOST_FAULTS]],
        )
    return [[names[i], names[j]] for i, j in sorted(pairs)]


def _within(place: str, fault: ProblemItem) -> ProblemItem:
    return fault.model_copy(update={"pointer": f"{place}{fault.pointer}"})


def _pairs_of_edges(
    document: EdgeListCreate, names: Sequence[str]
) -> tuple[set[tuple[int, int]], list[ProblemItem]]:
    index = {name: i for i, name in enumerate(names)}
    clean = cache(clean_name)  # each variable is named by many edges
    pairs: set[tuple[int, int]] = set()
    faults: list[ProblemItem] = []
    for number, edge in enumerate(document.edges):
        if len(faults) >= _MOST_FAULTS:
            break
        pointer = f"/edges/{number}"
        source, target = index.get(clean(edge["source"])), index.get(clean(edge["target"]))
        if source is None or target is None:
            faults += [
                ProblemItem(
                    message=f"No variable is named {shorten(name)!r}.",
                    pointer=f"{pointer}/{end}",
                )
                for end, name, place in (
                    ("source", edge["source"], source),
                    ("target", edge["target"], target),
                )
                if place is None
            ]
            continue
        pair = (min(source, target), max(source, target))
        if pair[0] == pair[1]:
            faults.append(ProblemItem(message="An edge joins two variables.", pointer=pointer))
        elif pair in pairs:
            message = "This pair was listed before; edges are undirected, list each once."
            faults.append(ProblemItem(message=message, pointer=pointer))
        pairs.add(pair)
    return pairs, faults


def _pairs_of_matrix(
    document: AdjacencyCreate, names: Sequence[str]
) -> tuple[set[tuple[int, int]], list[ProblemItem]]:
    matrix = document.matrix
    own = list(names) if document.names is None else [clean_name(name) for name in document.names]
    faults = (
        _first(_name_faults(own, names))
        or _first(_shape_faults(matrix, len(own)))
        or _first(_cell_faults(matrix, own))
    )
    if faults:
        return set(), faults
    place = {name: i for i, name in enumerate(names)}
    pairs = set()
    for i, row in enumerate(matrix):
        for j in range(i + 1, len(row)):
            if row[j]:
                ends = sorted((place[own[i]], place[own[j]]))
                pairs.add((ends[0], ends[1]))
    return pairs, []


def _first(faults: Iterator[ProblemItem]) -> list[ProblemItem]:
    return list(islice(faults, _MOST_FAULTS))


def _name_faults(own: Sequence[str], names: Sequence[str]) -> Iterator[ProblemItem]:
    known, named = set(names), set[str]()
    for i, name in enumerate(own):
        if name not in known:
            message = f"No variable is named {shorten(name)!r}."
            yield ProblemItem(message=message, pointer=f"/names/{i}")
        elif name in named:
            yield ProblemItem(message=f"{name!r} was named before.", pointer=f"/names/{i}")
        named.add(name)
    absent = [name for name in names if name not in named]
    if absent:
        listed = ", ".join(repr(name) for name in absent[:10])
        yield ProblemItem(message=f"Variables without a row: {listed}.", pointer="/names")


def _shape_faults(matrix: list[list[int]], width: int) -> Iterator[ProblemItem]:
    if len(matrix) != width:
        message = f"The matrix has {len(matrix)} rows; there are {width} variables."
        yield ProblemItem(message=message, pointer="/matrix")
    for i, row in enumerate(matrix):
        if len(row) != width:
            message = f"The row has {len(row)} entries; there are {width} variables."
            yield ProblemItem(message=message, pointer=f"/matrix/{i}")


def _cell_faults(matrix: list[list[int]], own: Sequence[str]) -> Iterator[ProblemItem]:
    for i, row in enumerate(matrix):
        for j, entry in enumerate(row):
            if i == j and entry:
                message = "The diagonal must be 0: a variable has no edge to itself."
                yield ProblemItem(message=message, pointer=f"/matrix/{i}/{j}")
            if i < j and entry != matrix[j][i]:
                message = (
                    f"Not symmetric: {own[i]!r} to {own[j]!r} is {entry}, back it is "
                    f"{matrix[j][i]}. Send the moral graph of a directed one."
                )
                yield ProblemItem(message=message, pointer=f"/matrix/{i}/{j}")

"""Undirected graphs as clients may send them."""

from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, with_config
from typing_extensions import TypedDict

from service.http.request_model import RequestModel, has_few_fields

# Of 2,000 variables each is joined to a hundred. More would take seconds to store and to show.
MOST_EDGES = 100_000

Item = TypeVar("Item")


def _step_aside(item: Item) -> Item:
    """Let other threads go on: a long list is validated in one call that holds the interpreter."""
    return item


# fail_fast, here and below: a million wrong items would take the server minutes to list.
_Row = Annotated[
    list[Annotated[int, Field(ge=0, le=1)]], Field(fail_fast=True), AfterValidator(_step_aside)
]


@with_config(ConfigDict(extra="forbid"))
class TruthEdge(TypedDict):
    """An undirected edge between two variables."""

    source: Annotated[str, Field(description="Name of a variable, in any Unicode form.")]
    target: Annotated[
        str, Field(description="Name of another variable; the order of the two is free.")
    ]


class EdgeListCreate(RequestModel):
    """A graph as the list of its edges; variables in no edge have none."""

    kind: Literal["edges"] = Field("edges", description="`edges`.")
    # Each edge's turn of ours also lets other threads go on.
    edges: list[Annotated[TruthEdge, BeforeValidator(has_few_fields)]] = Field(
        fail_fast=True,
        max_length=MOST_EDGES,
        description="Each pair once. Directed graphs are refused: send the moral graph, in which "
        "the parents of a common child are joined and directions are gone.",
    )


class AdjacencyCreate(RequestModel):
    """A graph as its adjacency matrix."""

    kind: Literal["adjacency"] = Field("adjacency", description="`adjacency`.")
    names: Annotated[list[str], Field(fail_fast=True)] | None = Field(
        default=None,
        description="Variables of the rows and columns, every one of the data set once; left out: "
        "in the data set's order.",
    )
    matrix: list[_Row] = Field(
        fail_fast=True,
        description="1 where two variables are joined, else 0; symmetric, with a diagonal of 0.",
    )


GroundTruthCreate = Annotated[EdgeListCreate | AdjacencyCreate, Field(discriminator="kind")]

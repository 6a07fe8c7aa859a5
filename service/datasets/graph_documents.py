"""Undirected graphs as clients may send them."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

# fail_fast, here and below: a million wrong items would take the server minutes to list.
_Row = Annotated[list[Annotated[int, Field(ge=0, le=1)]], Field(fail_fast=True)]


class TruthEdge(BaseModel):
    """An undirected edge between two variables."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str = Field(description="Name of a variable, in any Unicode form.")
    target: str = Field(description="Name of another variable; the order of the two is free.")


class EdgeListCreate(BaseModel):
    """A graph as the list of its edges; variables in no edge have none."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["edges"] = Field(description="`edges`.")
    edges: list[TruthEdge] = Field(
        fail_fast=True,
        description="Each pair once. Directed graphs are refused: send the moral graph, in which "
        "the parents of a common child are joined and directions are gone.",
    )


class AdjacencyCreate(BaseModel):
    """A graph as its adjacency matrix."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["adjacency"] = Field(description="`adjacency`.")
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

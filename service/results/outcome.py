"""What the worker hands over when a job has succeeded, ready to be stored."""

from dataclasses import dataclass

from service.results.schemas import EstimationResult


@dataclass(frozen=True)
class Edge:
    """A pair of variables, named; the list of them is ranked by falling |partial correlation|."""

    source: str
    target: str
    precision: float
    partial_correlation: float
    selected: bool
    # Rows in which both variables are observed.
    n_pairwise: int


@dataclass(frozen=True)
class Artefact:
    """A derived file: a path-like name such as `figures/network.svg`, its type and its bytes."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True)
class Outcome:
    """Everything that one finished estimation leaves."""

    document: EstimationResult
    edges: list[Edge]
    artefacts: list[Artefact]

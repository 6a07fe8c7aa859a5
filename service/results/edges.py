"""The pairs of variables of an estimated network."""

from dataclasses import dataclass


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
    # Share of half-samples whose graph has the edge; None where none were drawn.
    inclusion: float | None = None

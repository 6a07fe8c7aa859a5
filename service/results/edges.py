"""The pairs of variables of an estimated network."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Edge:
    """A pair of variables, named; the list of them is ranked by falling |scaled interaction|."""

    source: str
    target: str
    precision: float
    # -K_ij / sqrt(K_ii K_jj), there for any K.
    scaled_interaction: float
    # The same where K is positive definite, from -1 to 1; None where there are no partial
    # correlations.
    partial_correlation: float | None
    selected: bool
    # Rows in which both variables are observed.
    n_pairwise: int
    # Share of half-samples whose graph has the edge; None where none were drawn.
    inclusion: float | None = None

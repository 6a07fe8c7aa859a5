"""The pairs of variables of an estimated network."""

from dataclasses import dataclass

from service.results.vocabulary import Verdict


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
    # The partial correlation without the penalty's bias, its standard error, the ends of its 95 %
    # interval, the p-value of zero and the q-value; None where they are not known.
    debiased: float | None = None
    standard_error: float | None = None
    lower: float | None = None
    upper: float | None = None
    p_value: float | None = None
    q_value: float | None = None
    # None where the estimator has no standard errors.
    verdict: Verdict | None = None

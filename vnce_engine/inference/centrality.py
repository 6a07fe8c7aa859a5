"""How strongly each variable is tied to the others, with intervals.

The strength of a variable is the sum of the sizes of its partial correlations (Barrat, Barthélemy,
Pastor-Satorras and Vespignani, 2004, "The architecture of complex weighted networks", PNAS 101),
here over the pairs found present: a sum over all pairs would count, of each that is not there, the
size of its error. Its expected influence is the sum of all, with their signs (Robinaugh, Millner
and McNally, 2016, "Identifying highly influential nodes in the complicated grief network", J.
Abnorm. Psychol. 125), in which errors cancel.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vnce_engine.inference.interval import Interval
from vnce_engine.inference.result import Edge, Uncertainty, Verdict


@dataclass(frozen=True)
class Centrality:
    """A variable's place in the network; intervals are of partial correlations without bias."""

    column: int
    """Its position in the table."""
    degree: int
    """Pairs with it that are found present."""
    strength: Interval | None
    """Sum of their |partial correlations|, from 0 up. Its interval takes for given which pairs are
    present; one that the table was too small to find is not in it. None where one is not known."""
    expected_influence: Interval | None
    """Sum of its partial correlations with all others, signs kept; None where one is not known."""


def centralities(
    uncertainty: Uncertainty, edges: Sequence[Edge], num_clusters: int | None = None
) -> list[Centrality]:
    """Return those of all columns, in order; `edges` are all pairs, with their verdicts.

    `num_clusters` is None where rows are independent.
    """
    correlation = uncertainty.partial_correlation.numpy().copy()
    np.fill_diagonal(correlation, 0.0)
    covariance = uncertainty.covariance.numpy()
    present = np.zeros(correlation.shape, dtype=bool)
    for edge in edges:
        if edge.verdict is Verdict.PRESENT:
            present[edge.source, edge.target] = present[edge.target, edge.source] = True
    signs = np.where(present, np.sign(correlation), 0.0)
    everything = np.ones_like(correlation)
    found = []
    for column in range(len(correlation)):
        of_column = correlation[column], covariance[column]
        strength = _sum(*of_column, signs[column], num_clusters)
        if strength is not None:
            strength = Interval(strength.value, max(strength.lower, 0.0), strength.upper)
        influence = _sum(*of_column, everything[column], num_clusters)
        degree = int(present[column].sum())
        found.append(Centrality(column, degree, strength, influence))
    return found


def _sum(
    correlation: NDArray[np.float64],
    covariance: NDArray[np.float64],
    weight: NDArray[np.float64],
    num_clusters: int | None,
) -> Interval | None:
    """Return a weighted sum of one column's correlations (d,); what has no weight plays no part."""
    used = weight != 0
    weights = weight[used]
    variance = weights @ covariance[np.ix_(used, used)] @ weights
    error = math.sqrt(max(float(variance), 0.0))
    return Interval.of(float(weights @ correlation[used]), error, num_clusters)

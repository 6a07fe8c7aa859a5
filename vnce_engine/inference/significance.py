"""Intervals, tests and verdicts of edges, from how sure the partial correlations are."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control
from scipy.stats import t as student

from vnce_engine.inference.interval import CONFIDENCE
from vnce_engine.inference.result import Edge, Uncertainty, Verdict

FloatArray = NDArray[np.float64]


class FdrMethod(StrEnum):
    """How q-values bound the expected share of false edges among those found."""

    BENJAMINI_HOCHBERG = "benjamini-hochberg"
    """Where tests are independent, or positively dependent."""
    BENJAMINI_YEKUTIELI = "benjamini-yekutieli"
    """Whatever their dependence, at the price of power."""


@dataclass(frozen=True)
class DiscoveryRule:
    """When an edge is called present, and when absent."""

    rate: float
    """False discovery rate: the expected share of false edges among those called present."""
    method: FdrMethod
    smallest: float
    """The |partial correlation| from which an edge matters."""

    def verdict(self, lower: float, upper: float, q_value: float) -> Verdict:
        """Judge a pair by its interval and its q-value.

        An interval that is all of -1 to 1 tells nothing, not even of a pair's sign: K_ii of one of
        its columns may be about zero, as where tails are too heavy for the model.
        """
        if lower <= -1 and upper >= 1:
            return Verdict.UNDECIDED
        if q_value <= self.rate:
            return Verdict.PRESENT
        if -self.smallest < lower and upper < self.smallest:
            return Verdict.ABSENT
        return Verdict.UNDECIDED


@dataclass(frozen=True)
class EdgeTests:
    """Of every pair, (d, d) each and symmetric: NaN where nothing is known of one."""

    debiased: FloatArray
    standard_error: FloatArray
    lower: FloatArray
    upper: FloatArray
    p_value: FloatArray
    q_value: FloatArray
    rule: DiscoveryRule

    @classmethod
    def of(
        cls, uncertainty: Uncertainty, num_independent: NDArray[np.int64], rule: DiscoveryRule
    ) -> "EdgeTests":
        """Test all pairs by what is known of their partial correlations.

        By the ratio to the standard error under the hypothesis, in which the spread of K_ii has no
        part. Its distribution is taken to be Student's t, with one degree of freedom less than
        rows, or clusters of rows, have both columns, (d, d) `num_independent`: so many are what
        standard errors are estimated from. Estimates and intervals are cut off at -1 and 1.
        """
        debiased = uncertainty.partial_correlation.numpy().copy()
        np.fill_diagonal(debiased, np.nan)
        standard_error = np.where(np.isnan(debiased), np.nan, uncertainty.standard_error.numpy())
        freedom = np.maximum(num_independent - 1, 1)
        width = student.isf((1 - CONFIDENCE) / 2, freedom) * standard_error
        null_error = np.where(np.isnan(debiased), np.nan, uncertainty.null_error.numpy())
        p_value = 2 * student.sf(np.abs(debiased) / null_error, freedom)
        return cls(
            debiased=debiased.clip(-1.0, 1.0),
            standard_error=standard_error,
            lower=(debiased - width).clip(-1.0, 1.0),
            upper=(debiased + width).clip(-1.0, 1.0),
            p_value=p_value,
            q_value=_q_values(p_value, rule.method),
            rule=rule,
        )

    def judge(self, edge: Edge) -> Edge:
        """Return the edge with what is known of it; where that is nothing it is undecided."""
        pair = edge.source, edge.target
        q_value, lower, upper = (float(of[pair]) for of in (self.q_value, self.lower, self.upper))
        if math.isnan(q_value):
            return replace(edge, verdict=Verdict.UNDECIDED)
        return replace(
            edge,
            debiased=float(self.debiased[pair]),
            standard_error=float(self.standard_error[pair]),
            lower=lower,
            upper=upper,
            p_value=float(self.p_value[pair]),
            q_value=q_value,
            verdict=self.rule.verdict(lower, upper, q_value),
        )


def _q_values(p_value: FloatArray, method: FdrMethod) -> FloatArray:
    """Return q-values (d, d), adjusted over the pairs of which a p-value is known, each once."""
    q_value = np.full_like(p_value, np.nan)
    rows, columns = np.triu_indices(len(p_value), k=1)
    known = ~np.isnan(p_value[rows, columns])
    rows, columns = rows[known], columns[known]
    if len(rows):
        name = "bh" if method is FdrMethod.BENJAMINI_HOCHBERG else "by"
        adjusted = false_discovery_control(p_value[rows, columns], method=name)
        q_value[rows, columns] = q_value[columns, rows] = adjusted
    return q_value

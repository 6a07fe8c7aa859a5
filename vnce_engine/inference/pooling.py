"""Rubin's rules: one estimate with its standard error from estimates of several completed tables.

The variance of a pooled estimate is W + (1 + 1/m) B: W the mean of the m variances that the
estimates would have were the tables the data, B the variance between the estimates.

Sources: Rubin (1987), "Multiple Imputation for Nonresponse in Surveys"; Barnard and Rubin (1999),
"Small-sample degrees of freedom with multiple imputation", Biometrika 86.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from vnce_engine.runtime.checks import as_array

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Pooled:
    """What m completed tables say together of q numbers; all arrays are (q,)."""

    estimate: FloatArray
    standard_error: FloatArray
    degrees_of_freedom: FloatArray
    """Of the t distribution that (estimate - truth) / standard error has."""
    missing_share: FloatArray
    """Share of the variance that is there because cells are missing, from 0 to 1."""

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return the ends (q,) of a confidence interval of that level, between 0 and 1."""
        distance = stats.t.ppf(0.5 + 0.5 * level, self.degrees_of_freedom) * self.standard_error
        return self.estimate - distance, self.estimate + distance


def pool(
    estimates: ArrayLike, variances: ArrayLike, complete_degrees_of_freedom: float = math.inf
) -> Pooled:
    """Return the m `estimates` (m, q) with their squared standard errors, `variances`, as one.

    `complete_degrees_of_freedom` are those of a complete table: of a regression the number of rows
    less that of coefficients. Raises `ValueError` if there are not two tables at least, or the
    arrays are not of one shape.
    """
    each, within = as_array("estimates", estimates), as_array("variances", variances)
    if each.ndim != 2 or each.shape != within.shape or len(each) < 2:
        raise ValueError(
            "`estimates` and `variances` must both be (m, q), m at least 2, got "
            f"{each.shape} and {within.shape}"
        )
    m = len(each)
    mean_within, between = within.mean(axis=0), (1 + 1 / m) * each.var(axis=0, ddof=1)
    total = mean_within + between
    share = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
    return Pooled(
        each.mean(axis=0),
        np.sqrt(total),
        _degrees_of_freedom(share, m, complete_degrees_of_freedom),
        share,
    )


def _degrees_of_freedom(share: FloatArray, m: int, complete: float) -> FloatArray:
    """Return them for shares of missing information; Barnard and Rubin's, Rubin's if infinite."""
    with np.errstate(divide="ignore"):
        by_tables = (m - 1) / share**2
        if math.isinf(complete):
            return by_tables
        by_rows = (complete + 1) / (complete + 3) * complete * (1 - share)
        return 1 / (1 / by_tables + 1 / by_rows)

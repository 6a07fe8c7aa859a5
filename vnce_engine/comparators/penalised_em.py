"""EM with the graphical lasso for its M-step: for tables with no more rows than columns.

Without a penalty EM's covariance is singular there, and no lasso of it can mend what its
imputations have learnt. Here missing cells are imputed under the penalised K itself, so that

    log likelihood of the observed cells, nats a row, - ½ strength sum_{i != j} |K_ij|

never falls. On a complete table it is the graphical lasso of the sample covariance.
Source: Staedler and Buehlmann (2012), "Missing values: sparse inverse covariance estimation and an
extension to sparse regression", Stat. Comput. 22.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from torch import Tensor

from vnce_engine.comparators.gaussian_em import (
    GaussianFit,
    Spread,
    fit_gaussian,
    independent_covariance,
    independent_fit,
    is_regular,
)
from vnce_engine.comparators.graphical_lasso import (
    Lasso,
    LassoFit,
    falling_strengths,
    lasso_of,
)
from vnce_engine.comparators.standardised import StandardisedTable
from vnce_engine.distributions.definiteness import inverse
from vnce_engine.runtime.progress import FitCancelledError, Progress
from vnce_engine.runtime.reports import FitStatus

# The weakest penalty as a share of the strongest. Below, with fewer rows than columns, nearly all
# pairs are edges, and the lasso takes ever longer.
_WEAKEST = 0.1
# Least gain of an iteration, in nats a row, that is worth another: that of the lasso's dual gap.
_LEAST_GAIN = 1e-4


class PenalisedPath:
    """Such fits of a table, each from the one before it."""

    ends_early = True

    def __init__(
        self,
        table: StandardisedTable,
        max_iterations: int,
        tolerance: float,
        strengths: Sequence[float] | None = None,
    ) -> None:
        """Take strengths from strong to weak, or from the least that leaves no edge down."""
        self._table, self._max_iterations = table, max_iterations
        self._tolerance = max(tolerance, _LEAST_GAIN)
        self._last: GaussianFit | None = None
        self.strengths = strengths or falling_strengths(independent_covariance(table.X), _WEAKEST)

    @property
    def start(self) -> GaussianFit:
        """The last fit, or independent columns if there is none."""
        return self._last or independent_fit(self._table)

    def at(self, strength: float, progress: Progress) -> LassoFit:
        """Return the fit at a strength; raise `FitCancelledError` when the caller says so."""
        em = fit_gaussian(
            self._table,
            max_iterations=self._max_iterations,
            tolerance=self._tolerance,
            progress=progress,
            span=None,
            m_step=partial(_m_step, strength),
            start=None if self._last is None else _start(self._last, strength),
        )
        if em.status is FitStatus.CANCELLED:
            raise FitCancelledError
        if em.status is not FitStatus.NON_FINITE:
            self._last = em
        is_settled = em.status is FitStatus.CONVERGED
        return LassoFit(Lasso(strength, em.spread.precision, is_settled), em)

    def of(self, training: StandardisedTable, progress: Progress) -> "PenalisedPath":
        """Return the same of other rows."""
        return PenalisedPath(training, self._max_iterations, self._tolerance, self.strengths)


def _m_step(strength: float, covariance: Tensor) -> Spread | None:
    """Return the graphical lasso of expected second moments about the mean."""
    precision = lasso_of(covariance, strength).precision
    if not is_regular(precision):
        return None
    return Spread(inverse(precision), precision, _penalty(strength, precision))


def _start(em: GaussianFit, strength: float) -> tuple[Tensor, Spread]:
    """Return where a fit at another strength has ended."""
    return em.mean, replace(em.spread, penalty=_penalty(strength, em.spread.precision))


def _penalty(strength: float, precision: Tensor) -> float:
    """Return the penalty in nats a row."""
    return 0.5 * strength * float(precision.abs().sum() - precision.diagonal().abs().sum())

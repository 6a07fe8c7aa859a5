"""Maximum likelihood of a Gaussian on all of ℝ^d from rows with missing cells, by EM.

The E-step takes the expected moments given the observed cells, the M-step the mean and covariance
with these moments; the observed-data likelihood never falls.
Source: Dempster, Laird and Rubin (1977); Little and Rubin, "Statistical analysis with missing
data", chapter 11.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.comparators.standardised import StandardisedTable
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.definiteness import inverse, smallest_scaled_eigenvalue
from vnce_engine.distributions.expected_moments import IncompleteRows
from vnce_engine.runtime.checkpoint import Saved
from vnce_engine.runtime.progress import FitCancelledError, Progress
from vnce_engine.runtime.reports import FitStatus

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """A covariance (d, d), its inverse, and the penalty of it, nats per row."""

    covariance: Tensor
    precision: Tensor
    penalty: float = 0.0


# The M-step: takes expected second moments about the mean (d, d), and returns what maximises the
# expected log likelihood less some penalty; None if nothing regular does.
MStep = Callable[[Tensor], Spread | None]


@dataclass(frozen=True)
class GaussianFit:
    """Mean (d,) and spread of standardised columns, and how EM ended."""

    mean: Tensor
    spread: Spread
    log_likelihood_path: tuple[float, ...]
    """Observed-data log likelihood, nats per row, of the estimates before each iteration, in the
    units of the table that was standardised; less the penalty where there is one."""
    column_change: FloatArray
    """(d,): change of the mean imputed value of each column in the last iteration."""
    status: FitStatus
    message: str = ""


def fit_gaussian(
    table: StandardisedTable,
    *,
    max_iterations: int,
    tolerance: float,
    progress: Progress,
    span: tuple[float, float] | None = (0.0, 1.0),
    m_step: MStep | None = None,
    start: tuple[Tensor, Spread] | None = None,
) -> GaussianFit:
    """Fit to a table with missing cells, from the columns' own means and variances.

    Or from another mean and spread. `span` is the part of the present stage that this is, None if
    that has been entered. Without an `m_step` nothing is penalised.
    Ends when an iteration gains less than `tolerance` nats per row. A covariance that becomes
    singular ends it too, with status `NON_FINITE` and the last regular estimate.
    """
    log_jacobian = float(table.log_jacobian().mean())
    em = _Iterations(torch.from_numpy(table.X), log_jacobian, tolerance, m_step or _unpenalised)
    if start is not None:
        em.mean, em.spread = start
    status, message = FitStatus.MAX_ITERATIONS, ""
    stage = progress.checkpoint.stage()
    if stage.saved is not None:
        em.go_on_from(stage.saved)
    try:
        if span is not None:
            progress.enter_part(*span)
        while not em.has_converged and len(em.path) < max_iterations:
            if not em.iterate():
                status, message = FitStatus.NON_FINITE, _singular(em.path)
                break
            if not em.has_converged:
                stage.save(em.to_save())
            progress.report(len(em.path) / max_iterations, len(em.path), em.path[-1])
        if em.has_converged:
            status = FitStatus.CONVERGED
    except FitCancelledError:
        status = FitStatus.CANCELLED
    return GaussianFit(em.mean, em.spread, tuple(em.path), em.change.numpy(), status, message)


class _Iterations:
    """The state between iterations."""

    def __init__(self, rows: Tensor, log_jacobian: float, tolerance: float, m_step: MStep) -> None:
        self._rows, self._tolerance = IncompleteRows(rows), tolerance
        self._log_jacobian, self._m_step = log_jacobian, m_step
        self.mean, self.spread = _independent(rows)
        self.path: list[float] = []
        self.change = torch.full_like(self.mean, torch.nan)
        self.has_converged = False
        self._imputed = self.mean

    def iterate(self) -> bool:
        """Take the E-step, and the M-step if it is worth one; False if that would be singular."""
        expected = self._rows.expected(self.mean, self.spread.precision)
        self.change, self._imputed = (expected.imputed - self._imputed).abs(), expected.imputed
        self.path.append(expected.log_likelihood + self._log_jacobian - self.spread.penalty)
        if len(self.path) > 1 and self.path[-1] - self.path[-2] < self._tolerance:
            self.has_converged = True
            return True
        second = expected.second - torch.outer(expected.first, expected.first)
        spread = self._m_step(second)
        if spread is None:
            return False
        self.mean, self.spread = expected.first, spread
        return True

    def to_save(self) -> Saved:
        """Return the estimate and how far EM has come."""
        spread = (self.spread.covariance, self.spread.precision, self.spread.penalty)
        return self.mean, spread, self.change, self._imputed, tuple(self.path)

    def go_on_from(self, saved: Saved) -> None:
        """Go on from an interrupted fit's estimate."""
        self.mean, spread, self.change, self._imputed, path = saved
        self.spread, self.path = Spread(*spread), list(path)


def independent_covariance(X: FloatArray) -> Tensor:
    """Return the expected covariance (d, d) of an incomplete X (n, d) under independent columns.

    Where no penalised step away from such columns gains, they are the penalised maximum.
    """
    rows = torch.from_numpy(X)
    mean, spread = _independent(rows)
    expected = IncompleteRows(rows).expected(mean, spread.precision)
    return expected.second - torch.outer(expected.first, expected.first)


def independent_fit(table: StandardisedTable) -> GaussianFit:
    """Return independent columns, from which EM starts, as an estimate."""
    mean, spread = _independent(torch.from_numpy(table.X))
    change = np.full(len(mean), np.nan)
    return GaussianFit(mean, spread, (), change, FitStatus.CANCELLED)


def observed_log_likelihoods(X: FloatArray, mean: Tensor, precision: Tensor) -> FloatArray:
    """Return the log likelihood (n,) of each row's observed cells, X (n, d) with NaN for others."""
    rows = IncompleteRows(torch.from_numpy(X))
    return rows.log_likelihoods(mean, precision).numpy()


def _independent(rows: Tensor) -> tuple[Tensor, Spread]:
    mean, variance = Observations(rows.nan_to_num(nan=0.0), ~rows.isnan()).moments()
    return mean, Spread(torch.diag(variance), torch.diag(1 / variance))


def _unpenalised(covariance: Tensor) -> Spread | None:
    return Spread(covariance, inverse(covariance)) if is_regular(covariance) else None


def is_regular(covariance: Tensor) -> bool:
    """Return whether a covariance has an inverse with digits to it, scaled to correlations."""
    if not (torch.isfinite(covariance).all() and (covariance.diagonal() > 0).all()):
        return False
    least = len(covariance) * torch.finfo(covariance.dtype).eps ** 0.75
    return bool(smallest_scaled_eigenvalue(covariance) > least)


def _singular(path: list[float]) -> str:
    last = f"{path[-1]:.6g}" if path else "none"
    return (
        f"The covariance became singular in iteration {max(len(path), 1)} (last finite log "
        f"likelihood: {last} nats per row): some column is a function of others, or rows are too "
        "few. The last regular estimate is returned. Leave out such columns."
    )

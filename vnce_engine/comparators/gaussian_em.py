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
from vnce_engine.distributions.gaussian_conditional import BLOCK_ROWS, GaussianConditionals
from vnce_engine.distributions.quadratic import QuadraticModel
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


@dataclass(frozen=True)
class _Expected:
    """Expected moments over rows, and the log likelihood at the parameters they were taken at."""

    first: Tensor
    second: Tensor
    imputed: Tensor
    """(d,): mean of each column's missing cells, 0 where none is missing"""
    log_likelihood: float


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
        self._blocks, self._tolerance = _blocks(rows), tolerance
        self._log_jacobian, self._m_step = log_jacobian, m_step
        self.mean, self.spread = _independent(rows)
        self.path: list[float] = []
        self.change = torch.full_like(self.mean, torch.nan)
        self.has_converged = False
        self._imputed = self.mean

    def iterate(self) -> bool:
        """Take the E-step, and the M-step if it is worth one; False if that would be singular."""
        expected = _expect(self._blocks, self.mean, self.spread.precision)
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
    expected = _expect(_blocks(rows), mean, spread.precision)
    return expected.second - torch.outer(expected.first, expected.first)


def independent_fit(table: StandardisedTable) -> GaussianFit:
    """Return independent columns, from which EM starts, as an estimate."""
    mean, spread = _independent(torch.from_numpy(table.X))
    change = np.full(len(mean), np.nan)
    return GaussianFit(mean, spread, (), change, FitStatus.CANCELLED)


def observed_log_likelihoods(X: FloatArray, mean: Tensor, precision: Tensor) -> FloatArray:
    """Return the log likelihood (n,) of each row's observed cells, X (n, d) with NaN for others."""
    log_likelihoods = np.empty(len(X))
    for block in _blocks(torch.from_numpy(X)):
        log_likelihoods[block.order] = block.complete(mean, precision).log_likelihood.numpy()
    return log_likelihoods


@dataclass(frozen=True)
class _Completed:
    """A block's rows with missing cells at their conditional means, and what else EM needs."""

    rows: Tensor
    """(b, d)"""
    spread: Tensor
    """(d, d): sum over rows of the conditional covariance of their missing cells"""
    log_likelihood: Tensor
    """(b,): of the observed cells of each row"""


@dataclass(frozen=True)
class _Block:
    """Some rows (b, d), those of one missingness pattern together."""

    order: NDArray[np.intp]
    """(b,): their positions in the table"""
    values: Tensor
    """(b, d), 0 where missing"""
    is_missing: Tensor
    """bool (b, d)"""
    patterns: Tensor
    """bool (number of patterns, d): True where missing"""
    pattern: Tensor
    """int64 (b,): the pattern of each row"""

    def complete(self, mean: Tensor, precision: Tensor) -> _Completed:
        """Return the completed rows under N(mean, precision⁻¹); one factor serves a pattern."""
        conditionals = GaussianConditionals.of(precision, self.patterns)
        deviation = torch.where(self.is_missing, 0.0, self.values - mean)
        completed = conditionals.completed(deviation, 0.0, self.pattern)
        counts = torch.bincount(self.pattern, minlength=len(self.patterns)).to(mean.dtype)
        log_partition = QuadraticModel.normal(torch.zeros_like(mean), precision).log_partition
        constant = conditionals.log_integral() - log_partition
        squares = ((completed @ precision) * completed).sum(dim=1)
        return _Completed(
            completed + mean,
            torch.einsum("p,pij->ij", counts, conditionals.covariance()),
            constant[self.pattern] - 0.5 * squares,
        )


def _blocks(rows: Tensor) -> list[_Block]:
    """Return the rows (n, d) in blocks, sorted by pattern so that blocks share factors."""
    is_missing = rows.isnan()
    _, pattern = torch.unique(is_missing, dim=0, return_inverse=True)
    blocks = []
    for order in torch.argsort(pattern, stable=True).split(BLOCK_ROWS):
        patterns, inverse = torch.unique(is_missing[order], dim=0, return_inverse=True)
        values = rows[order].nan_to_num(nan=0.0)
        blocks.append(_Block(order.numpy(), values, is_missing[order], patterns, inverse))
    return blocks


def _expect(blocks: list[_Block], mean: Tensor, precision: Tensor) -> _Expected:
    first, imputed, num_missing = torch.zeros(3, len(mean), dtype=mean.dtype)
    second = torch.zeros_like(precision)
    log_likelihood = 0.0
    for block in blocks:
        completed = block.complete(mean, precision)
        first += completed.rows.sum(dim=0)
        imputed += (completed.rows * block.is_missing).sum(dim=0)
        num_missing += block.is_missing.sum(dim=0)
        second += completed.rows.mT @ completed.rows + completed.spread
        log_likelihood += float(completed.log_likelihood.sum())
    num_rows = sum(len(block.order) for block in blocks)
    second = 0.5 * (second + second.mT)
    return _Expected(
        first / num_rows,
        second / num_rows,
        imputed / num_missing.clamp(min=1),
        log_likelihood / num_rows,
    )


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

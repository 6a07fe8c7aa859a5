"""Moments of rows with missing cells, expected under a Gaussian on all of R^d: EM's E-step."""

from dataclasses import dataclass

import torch
from torch import Tensor

from vnce_engine.distributions.gaussian_conditional import BLOCK_ROWS, GaussianConditionals
from vnce_engine.distributions.quadratic import QuadraticModel


@dataclass(frozen=True)
class ExpectedMoments:
    """Means over rows, and the log likelihood at the parameters they were taken at."""

    first: Tensor
    """(d,)"""
    second: Tensor
    """(d, d)"""
    imputed: Tensor
    """(d,): mean of each column's missing cells, 0 where none is missing"""
    log_likelihood: float
    """Nats a row."""


class IncompleteRows:
    """Rows (n, d) of which cells are missing, in blocks that share patterns of missing cells."""

    def __init__(self, rows: Tensor) -> None:
        """Take rows (n, d), NaN where missing."""
        is_missing = rows.isnan()
        _, pattern = torch.unique(is_missing, dim=0, return_inverse=True)
        self._blocks = []
        for order in torch.argsort(pattern, stable=True).split(BLOCK_ROWS):
            patterns, inverse = torch.unique(is_missing[order], dim=0, return_inverse=True)
            values = rows[order].nan_to_num(nan=0.0)
            self._blocks.append(_Block(order, values, is_missing[order], patterns, inverse))
        self._num_rows = len(rows)

    def expected(self, mean: Tensor, precision: Tensor) -> ExpectedMoments:
        """Return the moments under N(mean, precision⁻¹), given the observed cells."""
        first, imputed, num_missing = mean.new_zeros(3, len(mean))
        second = torch.zeros_like(precision)
        log_likelihood = 0.0
        for block in self._blocks:
            completed = block.complete(mean, precision)
            first += completed.rows.sum(dim=0)
            imputed += (completed.rows * block.is_missing).sum(dim=0)
            num_missing += block.is_missing.sum(dim=0)
            second += completed.rows.mT @ completed.rows + completed.spread
            log_likelihood += float(completed.log_likelihood.sum())
        second = 0.5 * (second + second.mT)
        return ExpectedMoments(
            first / self._num_rows,
            second / self._num_rows,
            imputed / num_missing.clamp(min=1),
            log_likelihood / self._num_rows,
        )

    def log_likelihoods(self, mean: Tensor, precision: Tensor) -> Tensor:
        """Return the log likelihood (n,) of each row's observed cells."""
        log_likelihoods = mean.new_empty(self._num_rows)
        for block in self._blocks:
            log_likelihoods[block.order] = block.complete(mean, precision).log_likelihood
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

    order: Tensor
    """int64 (b,): their positions in the table"""
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

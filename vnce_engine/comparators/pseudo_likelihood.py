"""Pseudo-likelihood: the sum of each column's log density given all others.

Given the other columns, x_j has the density exp(-½ K_jj t² + b_j t) on t >= 0 up to its integral,
b_j = h_j - sum_{i != j} K_ij x_i: a univariate truncated normal, whose integral is known. The sum
of the logs is concave in K and h. Source: Besag (1975).

About the observed x_j that density is exp(D t - ½ K_jj (t - x_j)²) but for a constant, where D is
h_j - K_jᵀx: what it says of K and h are t and (t - x_j)², of which neither is large where x_j is.
"""

from dataclasses import dataclass

from torch import Tensor

from vnce_engine.comparators.columnwise import (
    ColumnwiseCurvature,
    slopes,
    symmetric,
    with_constant,
)
from vnce_engine.distributions import truncated_normal
from vnce_engine.penalties.penalty import PenaltyCurvature
from vnce_engine.runtime.progress import Progress

# The moments of a truncated normal take as long as about so many multiplications of matrices.
_WORK_PER_CELL = 500


@dataclass(frozen=True)
class PseudoLikelihood:
    """The log pseudo-likelihood of complete rows, in nats."""

    values: Tensor
    """x of each row, (d, n)"""
    rows: Tensor
    """a = (x - centre, 1) of each, (d + 1, n)"""
    centre: Tensor
    """(d,)"""

    @classmethod
    def of(cls, rows: Tensor, centre: Tensor) -> "PseudoLikelihood":
        """Take rows stored as columns, (d, n), for A of rows measured from `centre` (d,)."""
        return cls(rows, with_constant(rows, centre), centre)

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.rows.shape[1]

    def terms(self, augmented: Tensor, progress: Progress) -> tuple[Tensor, Tensor]:
        """Return the sum over rows, and its gradient in A."""
        mu, sigma = self._given_others(augmented, progress)
        value = truncated_normal.log_prob(self.values, mu, sigma).sum()
        mean, variance = truncated_normal.moments(mu, sigma)
        # The derivative of log p by D is x_j - E t, by K_jj, D as it is, ½ E (t - x_j)².
        gap = self.values - mean
        by_column = -slopes(gap, self.rows)
        by_column.diagonal().add_(0.5 * (variance + gap.square()).mean(dim=1))
        return value, self.num_rows * symmetric(by_column)

    def cell_values(self, augmented: Tensor) -> Tensor:
        """Return the log density (d, n) of each cell given its row's others."""
        mu, sigma = self._given_others(augmented, Progress(None))
        return truncated_normal.log_prob(self.rows[:-1], mu, sigma)

    def curvature(
        self, augmented: Tensor, penalty: PenaltyCurvature, is_free: Tensor
    ) -> ColumnwiseCurvature:
        """Return the negative Hessian over n, which is exact, and the penalty's part."""
        mu, sigma = self._given_others(augmented, Progress(None))
        mean, variance, third, spread = truncated_normal.central_statistics(mu, sigma)
        gap = mean - self.values
        hessians = PseudoLikelihoodHessians(
            self.rows,
            variance,
            third + 2 * gap * variance,
            spread + 4 * gap * (third + gap * variance),
        )
        return ColumnwiseCurvature(hessians, penalty, is_free)

    def _given_others(self, augmented: Tensor, progress: Progress) -> tuple[Tensor, Tensor]:
        """Return the parents' mu (d, n) and sigma (d, 1) of each cell given the others."""
        progress.spend(self.rows.numel() * (2 * len(self.rows) + _WORK_PER_CELL))
        diagonal = augmented.diagonal()[:-1].unsqueeze(1)
        return self.values - augmented[:-1] @ self.rows / diagonal, diagonal.rsqrt()


@dataclass(frozen=True)
class PseudoLikelihoodHessians:
    """Of a cell's log density in D and K_jj: the covariance of t and -½ (t - x_j)²."""

    rows: Tensor
    """a (d + 1, n)"""
    variance: Tensor
    """of t given the others, (d, n)"""
    across: Tensor
    """covariance of t and (t - x_j)², (d, n)"""
    of_square: Tensor
    """variance of (t - x_j)², (d, n)"""

    @property
    def weights(self) -> Tensor:
        """A column's mean variance given the others (d,)."""
        return self.variance.mean(dim=1)

    @property
    def moment(self) -> Tensor:
        """The mean (d + 1, d + 1) of aaᵀ over rows."""
        return slopes(self.rows, self.rows)

    def product(self, columns: Tensor, progress: Progress) -> Tensor:
        """Return every column's matrix times that column of `columns` (d + 1, d)."""
        progress.spend(2 * self.rows.numel() * len(self.rows))
        own = columns.diagonal().unsqueeze(1)
        moved = -columns.mT @ self.rows  # of D
        by_pull = self.variance * moved - 0.5 * self.across * own
        by_own = 0.25 * self.of_square * own - 0.5 * self.across * moved
        product = -slopes(by_pull, self.rows)
        product.diagonal().add_(by_own.mean(dim=1))
        return product

    def diagonal(self) -> Tensor:
        """Return the diagonal of every column's matrix, the columns of (d + 1, d)."""
        diagonal = slopes(self.variance, self.rows.square())
        own = self.across * self.rows[:-1] + 0.25 * self.of_square
        diagonal.diagonal().add_(own.mean(dim=1))
        return diagonal

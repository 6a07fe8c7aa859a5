"""The contrastive sample of a Gaussian: missing cells integrated out, without a draw.

With log phi(x) = -½ aᵀAa, a = (x, 1), on all of R^d, the posterior of a row's missing cells is
normal. With it for q, J_VNCE is J_NCE (Theorem 1 of the paper), every importance weight is
phi(x_o), and the slope of log phi(x_o) is the posterior mean of the slope of log phi(x), which
needs E a aᵀ alone.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from vnce_engine.contrastive.objective import (
    CURVATURE_NOISE_RATIO,
    DATA,
    NOISE,
    curvature_weights,
    data_probability,
    log_probability,
    noise_probability,
    row_terms,
)
from vnce_engine.distributions.definiteness import is_positive_definite
from vnce_engine.distributions.gaussian_conditional import GaussianConditionals
from vnce_engine.distributions.information import statistics, to_slope, upper_triangle
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.optim.row_curvature import RowCurvature
from vnce_engine.optim.symmetric_products import WeightedSquares, quadratics, symmetrised
from vnce_engine.penalties.penalty import PenaltyCurvature
from vnce_engine.runtime.progress import Progress

# Floats of temporaries in one block of rows: 8 MB.
_BLOCK_FLOATS = 2**20


@dataclass(frozen=True)
class GaussianSample:
    """Groups of a data row and nu noise rows that have its missing cells, or one class of them."""

    values: Tensor
    """(n, 1 + nu, d), 0 where missing: a data row first, then its noise rows."""
    log_noise: Tensor
    """(n, 1 + nu): log density of the noise at the observed cells."""
    owner: Tensor
    """int64 (n,): which rows of the table these are."""
    pattern: Tensor
    """int64 (n,): the pattern of missing cells of each data row."""
    patterns: Tensor
    """bool (number of patterns, d): True where missing."""
    nu: float
    """Noise rows a data row, also in a part that has rows of one class alone."""
    num_data: int = 1
    """Data rows in each group, 1 or 0; they come first."""

    @property
    def num_rows(self) -> int:
        """The number of data rows, n."""
        return len(self.owner)

    @property
    def num_draws(self) -> int:
        """Draws from q for each missing cell: none."""
        return 0

    @property
    def chance(self) -> float:
        """None but in the scores: each data row's has its noise rows'."""
        return 0.0

    def data_rows(self) -> Tensor:
        """Return int64 (n,): which rows of the table these are."""
        return self.owner

    def terms(self, augmented: Tensor, progress: Progress) -> tuple[Tensor, Tensor]:
        """Return the sum of the rows' terms, its gradient; -inf unless K is positive definite."""
        gradient = torch.zeros_like(augmented)
        if not is_positive_definite(augmented[:-1, :-1]):
            return augmented.new_tensor(-math.inf), gradient
        posterior = _Posterior.of(augmented, self.patterns)
        value = augmented.new_zeros(())
        slope_of_pattern = augmented.new_zeros(len(self.patterns))
        for rows in self._blocks():
            rows_completed = posterior.completed(self.values[rows], self.pattern[rows])
            progress.spend(2 * rows_completed.numel() * len(augmented))
            log_ratio = self._log_ratios(posterior, rows_completed, rows)
            terms = row_terms(log_ratio, self.nu, self._signs())
            value += terms.value.sum()
            flat = rows_completed.flatten(0, 1)
            gradient.addmm_(flat.mT * terms.slope.flatten(), flat, alpha=-0.5)
            slope_of_pattern.index_add_(0, self.pattern[rows], terms.slope.sum(dim=1))
        gradient[:-1, :-1] -= 0.5 * _weighted(posterior.covariance, slope_of_pattern)
        return value, gradient

    def curvature(
        self, augmented: Tensor, penalty: PenaltyCurvature, is_free: Tensor
    ) -> "GaussianCurvature":
        """Return minus the Hessian, but for a part whose expectation vanishes at the truth."""
        posterior = _Posterior.of(augmented, self.patterns)
        parts, patterns = [], []
        for rows in self._blocks():
            completed = posterior.completed(self.values[rows], self.pattern[rows])
            log_ratio = self._log_ratios(posterior, completed, rows)
            weights = curvature_weights(log_ratio, self.nu) * (0.25 / self.num_rows)
            parts.append((completed.flatten(0, 1).mT.contiguous(), weights.flatten()))
            patterns.append(self.pattern[rows])
        return GaussianCurvature(parts, penalty, is_free, patterns, posterior.covariance)

    def redraw(self, augmented: Tensor) -> None:
        """Do nothing: missing cells are integrated out and none is drawn."""

    def objective_by_row(self, augmented: Tensor, num_rows: int) -> Tensor:
        """Return each data row's share of the objective (num_rows,), 0 where it is not in here."""
        log_ratio = self._all_log_ratios(augmented)
        shares = log_probability(log_ratio, self.nu, self._signs()).sum(dim=1)
        return augmented.new_zeros(num_rows).index_add_(0, self.owner, shares)

    def information(self, augmented: Tensor) -> Tensor:
        """Return sum h (1 - h) T Tᵀ (p, p), h the probability of being data; see `information.py`.

        Of noise rows it takes four a data row.
        """
        size = len(augmented) * (len(augmented) + 1) // 2
        total = augmented.new_zeros(size, size)
        for means, probability, weight in self._weighted_statistics(augmented):
            total.addmm_(means * (probability * (1 - probability) * weight), means.mT)
        return total

    def noise_scores(self, augmented: Tensor) -> Tensor:
        """Return sum s sᵀ (p, p) of the noise rows' scores s = -h T."""
        size = len(augmented) * (len(augmented) + 1) // 2
        total = augmented.new_zeros(size, size)
        for means, probability, weight in self.noise_part()._weighted_statistics(augmented):
            total.addmm_(means * (probability.square() * weight), means.mT)
        return total

    def scores(self, augmented: Tensor, is_kept: Tensor) -> Tensor:
        """Return each kept data row's score with its noise rows' (r, p), in the table's order.

        Summed over rows they are the slope of the terms. `is_kept` is by row of the table.
        """
        part = self.select(is_kept)
        posterior = _Posterior.of(augmented, part.patterns)
        spread = pad(posterior.covariance, (0, 1, 0, 1))
        signs, position = part._signs(), is_kept.cumsum(dim=0) - 1
        total = augmented.new_empty(part.num_rows, *augmented.shape)
        for rows in part._blocks():
            pattern = part.pattern[rows]
            completed = posterior.completed(part.values[rows], pattern)
            slope = row_terms(part._log_ratios(posterior, completed, rows), self.nu, signs).slope
            # The slope of a log ratio is -½ E a aᵀ.
            squares = (completed * slope.unsqueeze(-1)).mT @ completed
            squares += slope.sum(dim=1)[:, None, None] * spread[pattern]
            total[position[part.owner[rows]]] = -0.5 * squares
        return to_slope(total)

    def _weighted_statistics(self, augmented: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield T (p, b), the probability of being data (b,) and weights (b,) of rows.

        Of noise rows four a data row, which stand for all of them.
        """
        posterior = _Posterior.of(augmented, self.patterns)
        i, j = upper_triangle(len(augmented), augmented.device)
        spread = pad(posterior.covariance, (0, 1, 0, 1))[:, i, j]
        spread[:, i == j] *= 0.5
        num_noise = self.values.shape[1] - self.num_data
        width = self.num_data + min(num_noise, CURVATURE_NOISE_RATIO)
        weight = augmented.new_ones(width)
        weight[self.num_data :] = num_noise / max(width - self.num_data, 1)
        for rows in self._blocks():
            pattern = self.pattern[rows]
            completed = posterior.completed(self.values[rows, :width], pattern)
            log_ratio = posterior.log_phi(completed, pattern) - self.log_noise[rows, :width]
            probability = data_probability(log_ratio, self.nu)
            of_rows = statistics(completed.flatten(0, 1).mT)
            means = of_rows - spread[pattern].repeat_interleave(width, dim=0).mT
            yield means, probability.flatten(), weight.repeat(len(pattern))

    def select(self, is_kept: Tensor) -> "GaussianSample":
        """Return some data rows, bool by row of the table, and their noise."""
        kept = is_kept[self.owner]
        used, pattern = torch.unique(self.pattern[kept], return_inverse=True)
        return GaussianSample(
            self.values[kept],
            self.log_noise[kept],
            self.owner[kept],
            pattern,
            self.patterns[used],
            self.nu,
            self.num_data,
        )

    def data_part(self, is_kept: Tensor) -> "GaussianSample":
        """Return some data rows, bool by row of the table, without noise rows."""
        part = self.select(is_kept)
        return replace(part, values=part.values[:, :1], log_noise=part.log_noise[:, :1])

    def noise_part(self) -> "GaussianSample":
        """Return the noise rows alone, sharing memory."""
        noise = slice(self.num_data, None)
        return replace(
            self, values=self.values[:, noise], log_noise=self.log_noise[:, noise], num_data=0
        )

    def wrong_probability(self, augmented: Tensor) -> Tensor:
        """Return the probability (n,) of being noise that each data row is given."""
        return noise_probability(self._all_log_ratios(augmented)[:, 0], self.nu)

    def effective_sample_size(self) -> float | None:
        """Return 1, as draws from the exact posterior all weigh the same; None if complete."""
        return 1.0 if bool(self.patterns[self.pattern].any()) else None

    def _all_log_ratios(self, augmented: Tensor) -> Tensor:
        posterior = _Posterior.of(augmented, self.patterns)
        parts = []
        for rows in self._blocks():
            completed = posterior.completed(self.values[rows], self.pattern[rows])
            parts.append(self._log_ratios(posterior, completed, rows))
        return torch.cat(parts)

    def _log_ratios(self, posterior: "_Posterior", completed: Tensor, rows: slice) -> Tensor:
        """Return log phi - log noise of the observed cells (b, 1 + nu)."""
        return posterior.log_phi(completed, self.pattern[rows]) - self.log_noise[rows]

    def _signs(self) -> Tensor:
        """Return (size of a group,): 1 for data, -1 for noise rows."""
        signs = self.log_noise.new_full((self.values.shape[1],), NOISE)
        signs[: self.num_data] = DATA
        return signs

    def _blocks(self) -> Iterator[slice]:
        """Yield ranges of data rows whose temporaries are small."""
        _, size, d = self.values.shape
        step = max(1, _BLOCK_FLOATS // (d * (d + size)))
        for start in range(0, self.num_rows, step):
            yield slice(start, start + step)


def log_density(augmented: Tensor, values: Tensor, pattern: Tensor, patterns: Tensor) -> Tensor:
    """Return log phi of the observed cells of rows `values` (n, r, d), shape (n, r).

    Rows of one of the n groups share the pattern of missing cells `pattern` (n,) of `patterns`.
    """
    posterior = _Posterior.of(augmented, patterns)
    return posterior.log_phi(posterior.completed(values, pattern), pattern)


def of_possible_spread(augmented: Tensor) -> QuadraticModel:
    """Return the model of A, or one nearer to independent columns where K is nearly singular.

    Standardised columns have no larger variance than d in any direction. An estimate may, against
    noise that is far from the data, and is no place to go on from.
    """
    smallest = 1 / (len(augmented) - 1)
    if float(torch.linalg.eigvalsh(augmented[:-1, :-1])[0]) >= smallest:
        return QuadraticModel.from_augmented(augmented)
    # What is zero stays zero.
    identity = torch.eye(len(augmented), dtype=augmented.dtype, device=augmented.device)
    return QuadraticModel.from_augmented(torch.lerp(augmented, identity, smallest))


@dataclass(frozen=True)
class _Posterior:
    """The normal distribution of the missing cells of every pattern, given what is observed."""

    augmented: Tensor
    covariance: Tensor
    """(patterns, d, d), zero where observed."""
    log_integral: Tensor
    """(patterns,): log of the integral of exp(-½ zᵀ K_mm z) over the missing cells."""

    @classmethod
    def of(cls, augmented: Tensor, patterns: Tensor) -> "_Posterior":
        conditionals = GaussianConditionals.of(augmented[:-1, :-1], patterns)
        return cls(augmented, conditionals.covariance(), conditionals.log_integral())

    def completed(self, values: Tensor, pattern: Tensor) -> Tensor:
        """Return a = (x, 1) of groups of rows (b, r, d), missing cells at their posterior mean."""
        precision, linear = self.augmented[:-1, :-1], -self.augmented[:-1, -1]
        pull = linear - values @ precision
        return pad(torch.baddbmm(values, pull, self.covariance[pattern]), (0, 1), value=1.0)

    def log_phi(self, completed: Tensor, pattern: Tensor) -> Tensor:
        """Return log phi of the observed cells (b, r): that at the mean, times the integral."""
        at_mean = -0.5 * ((completed @ self.augmented) * completed).sum(dim=2)
        return at_mean + self.log_integral[pattern].unsqueeze(1)


@dataclass(frozen=True)
class GaussianCurvature(RowCurvature):
    """The same operator for rows of which E a aᵀ is known: slopes of -½ E a aᵀ, weighted."""

    patterns: list[Tensor]
    """int64 (groups,) for each block of rows, whose groups share a pattern."""
    covariance: Tensor
    """(patterns, d, d): the posterior's, zero where observed."""

    def product(self, direction: Tensor, progress: Progress) -> Tensor:
        """Return the operator times a symmetric `direction`."""
        squares = WeightedSquares(direction)
        spread = (self.covariance * direction[:-1, :-1]).sum(dim=(1, 2))
        of_pattern = torch.zeros_like(spread)
        for (rows, weights), pattern in zip(self.rows, self.patterns, strict=True):
            progress.spend(2 * rows.numel() * len(direction))
            quadratic = quadratics(direction, rows).view(len(pattern), -1)
            weighted = (quadratic + spread[pattern].unsqueeze(1)).flatten() * weights
            squares.add(rows, weighted)
            of_pattern.index_add_(0, pattern, weighted.view(len(pattern), -1).sum(dim=1))
        product = squares.total()
        product[:-1, :-1] += _weighted(self.covariance, of_pattern)
        product[:-1, :-1] += self.penalty.product(direction[:-1, :-1])
        return product * self.is_free

    def diagonal(self) -> Tensor:
        """Return a bound of its diagonal: (E a_i a_j)² is at most E a_i² E a_j²."""
        diagonal = torch.zeros_like(self.is_free, dtype=self.covariance.dtype)
        variances = pad(self.covariance.diagonal(dim1=1, dim2=2), (0, 1))
        for (rows, weights), pattern in zip(self.rows, self.patterns, strict=True):
            groups = rows.square().view(len(rows), len(pattern), -1)
            squares = (groups + variances[pattern].mT.unsqueeze(2)).flatten(1)
            diagonal.addmm_(squares * weights, squares.mT)
        return symmetrised(diagonal) + self.penalty_diagonal()


def _weighted(covariance: Tensor, weights: Tensor) -> Tensor:
    """Return the sum (d, d) of matrices (patterns, d, d) by weights (patterns,)."""
    return torch.einsum("p,pij->ij", weights, covariance)

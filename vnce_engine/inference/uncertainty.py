"""How sure each partial correlation is: a step without the penalty, and its sampling spread.

A penalty draws theta towards its centre, and an estimate says by itself neither how far nor how
much it would vary over tables. From the estimate t a Newton step without the penalty,

    t_d = t + J⁻¹ g,   g = mean s_i(t),

takes the penalty's bias off to first order, with s_i the score of row i, and J its information. Of
the truncated model they are those of the likelihood (`likelihood_rows.py`); of the Gaussian, whose
noise is near the data, those of J_NCE, with a row's noise rows (`information.py`). The variance of
t_d is J⁻¹ / n where the model is true and s_i the likelihood's; whatever they are it is

    C = J⁻¹ V J⁻¹ / n,   V the variance over rows of s_i.

Each partial correlation is a smooth function of theta, and the covariance of two is the mean
product, over n, of what each row adds to them to first order, so that C itself is never made. The
test of a zero goes by what rows add to K_ij alone: the spread of K_ii plays no part under the
hypothesis, and where cells are missing it makes estimates far from zero look surer than they are.

Sources: Gutmann and Hyvärinen (2012), "Noise-contrastive estimation of unnormalized statistical
models", J. Mach. Learn. Res. 13, Theorem 3, for the asymptotic variance; White (1982), "Maximum
likelihood estimation of misspecified models", Econometrica 50, for the sandwich; van de Geer,
Bühlmann, Ritov and Dezeure (2014), "On asymptotically optimal confidence regions and tests for
high-dimensional models", Ann. Stat. 42, for the step.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from scipy.stats import chi2
from torch import Tensor

from vnce_engine.contrastive.prepared import ScoredRows
from vnce_engine.distributions.definiteness import is_positive_definite
from vnce_engine.distributions.information import to_matrix, upper_triangle
from vnce_engine.inference.result import Uncertainty

# Entries of theta up to which J is made as a matrix: 108 columns, 290 MB.
MOST_PARAMETERS = 6_000
# Of K_ii at the start, what a step leaves of it at least: a step may end below zero.
_LEAST_SHARE = 0.1
# Numbers in the scores of as many rows as are handled at a time.
_CHUNK = 2**22


@dataclass(frozen=True)
class UnpenalisedStep:
    """The step from an estimate, under which the rows have their missing cells drawn."""

    rows: ScoredRows
    augmented: Tensor
    """A (d + 1, d + 1), the estimate."""
    free: Tensor
    """int64: the entries of theta that are estimated."""
    factor: Tensor
    """Cholesky factor of J in those entries."""
    mean: Tensor
    """g (p, 1)"""
    change: Tensor
    """(d + 1, d + 1): what the step adds to A."""
    pairs: "_Pairs"
    """The partial correlations at the step's end."""

    @classmethod
    def of(
        cls, rows: ScoredRows, augmented: Tensor, is_estimated: Tensor
    ) -> "UnpenalisedStep | None":
        """Take the step, None where J or K has no inverse; missing cells are drawn anew.

        `augmented` is A (d + 1, d + 1) at an optimum, or near it, of a penalised objective;
        `is_estimated`, bool of its shape, is False for a linear term that is held at zero.
        """
        if not is_positive_definite(augmented[:-1, :-1]):
            return None
        rows.redraw(augmented)
        return cls._of_drawn(rows, augmented, is_estimated)

    def with_estimated(self, is_estimated: Tensor) -> "UnpenalisedStep | None":
        """Return the step in which other entries are estimated, from the same draws."""
        return self._of_drawn(self.rows, self.augmented, is_estimated)

    @classmethod
    def _of_drawn(
        cls, rows: ScoredRows, augmented: Tensor, is_estimated: Tensor
    ) -> "UnpenalisedStep | None":
        size = len(augmented)
        free = is_estimated[upper_triangle(size, augmented.device)].nonzero().flatten()
        information = rows.information(augmented)[free][:, free] / rows.num_rows
        factor, info = torch.linalg.cholesky_ex(information)
        if info != 0:
            return None
        sums = [scores.sum(dim=1, keepdim=True) for scores in _scores(rows, augmented)]
        mean = torch.stack(sums).sum(dim=0) / rows.num_rows
        change = to_matrix(_solved(mean, free, factor).squeeze(1), size)
        pairs = _Pairs.of(augmented + change, _LEAST_SHARE * augmented.diagonal()[:-1])
        return cls(rows, augmented, free, factor, mean, change, pairs)

    @property
    def distance(self) -> float:
        """How far the rows are from the estimate, n gᵀ J⁻¹ g, less what drawn rows' chance adds."""
        solved = _solved(self.mean, self.free, self.factor)
        by_chance = self.rows.chance * self.expected_distance
        return self.rows.num_rows * float((self.mean * solved).sum()) - by_chance

    @cached_property
    def expected_distance(self) -> float:
        """How far they are from the truth in the mean over tables, tr(J⁻¹ V)."""
        total = 0.0
        for scores in _scores(self.rows, self.augmented):
            deviations = scores - self.mean
            total += float((deviations * _solved(deviations, self.free, self.factor)).sum())
        return total / self.rows.num_rows / (1 + self.rows.chance)

    def p_value(self, is_tested: Tensor) -> float:
        """Return the p-value of Wald's test that some entries of A, bool of its shape, are zero."""
        lines = upper_triangle(len(self.augmented), self.mean.device)
        index = is_tested[lines].nonzero().flatten()
        parts = [
            _solved(scores - self.mean, self.free, self.factor)[index]
            for scores in _scores(self.rows, self.augmented)
        ]
        moved = torch.cat(parts, dim=1) / self.rows.num_rows
        end = (self.augmented + self.change)[lines][index]
        statistic = end @ torch.linalg.solve(moved @ moved.mT, end)
        return float(chi2.sf(float(statistic), len(index)))

    def uncertainty(self) -> Uncertainty:
        """Return how sure the partial correlations at its end are."""
        pairs, num_rows = self.pairs, self.rows.num_rows
        covariance = self.mean.new_zeros((len(self.augmented) - 1,) * 3)
        null_squares = torch.zeros_like(pairs.correlation)
        for scores in _scores(self.rows, self.augmented):
            moved = _solved(scores - self.mean, self.free, self.factor)
            null_squares += pairs.change_from_zero(moved).square().sum(dim=1)
            by_column = pairs.to_matrix(pairs.change(moved), diagonal=0.0)
            covariance += by_column @ by_column.mT
        return Uncertainty(
            pairs.to_matrix(pairs.correlation, diagonal=1.0).cpu(),
            pairs.to_matrix(null_squares.sqrt() / num_rows, diagonal=0.0).cpu(),
            covariance.cpu() / num_rows**2,
        )


def _scores(rows: ScoredRows, augmented: Tensor) -> Iterator[Tensor]:
    """Yield the scores (p, r) of all rows, r at a time."""
    num_parameters = len(upper_triangle(len(augmented), augmented.device)[0])
    index = rows.data_rows().sort().values
    for chunk in index.split(max(1, _CHUNK // num_parameters)):
        is_kept = torch.zeros(int(index[-1]) + 1, dtype=torch.bool, device=index.device)
        is_kept[chunk] = True
        yield rows.scores(augmented, is_kept).mT


def _solved(slopes: Tensor, free: Tensor, factor: Tensor) -> Tensor:
    """Return J⁻¹ times slopes (p, r), 0 in entries that are not estimated."""
    solution = torch.zeros_like(slopes)
    solution[free] = torch.cholesky_solve(slopes[free], factor)
    return solution


class _Pairs(NamedTuple):
    """The partial correlations of all pairs, m of them, as functions of theta."""

    i: Tensor
    j: Tensor
    """int64 (m,) each: the two columns, i < j."""
    of_pair: Tensor
    of_diagonal: Tensor
    """int64 (m,) and (d,): where theta has K_ij and K_ii."""
    scale: Tensor
    """(d,): K_ii^-½."""
    correlation: Tensor
    """(m,)"""

    @classmethod
    def of(cls, augmented: Tensor, least: Tensor) -> "_Pairs":
        """Return those of A (d + 1, d + 1), each K_ii at `least` (d,), positive, or above."""
        line, column = upper_triangle(len(augmented), augmented.device)
        of_column = column < len(augmented) - 1
        of_pair = ((line < column) & of_column).nonzero().flatten()
        of_diagonal = ((line == column) & of_column).nonzero().flatten()
        i, j = line[of_pair], column[of_pair]
        scale = torch.maximum(augmented.diagonal()[:-1], least).rsqrt()
        return cls(i, j, of_pair, of_diagonal, scale, -augmented[i, j] * scale[i] * scale[j])

    def change(self, theta: Tensor) -> Tensor:
        """Return by how much changes of theta (p, r) change them (m, r), to first order."""
        of_diagonal = theta[self.of_diagonal] * self.scale.square().unsqueeze(1)
        both = of_diagonal[self.i] + of_diagonal[self.j]
        return self.change_from_zero(theta) - 0.5 * self.correlation.unsqueeze(1) * both

    def change_from_zero(self, theta: Tensor) -> Tensor:
        """Return the same of correlations of zero, which changes of K_ii do not change."""
        return -theta[self.of_pair] * (self.scale[self.i] * self.scale[self.j]).unsqueeze(1)

    def to_matrix(self, values: Tensor, diagonal: float) -> Tensor:
        """Return the symmetric matrix (d, d, ...) of values (m, ...)."""
        size = len(self.scale)
        matrix = values.new_full((size, size, *values.shape[1:]), diagonal)
        matrix[self.i, self.j] = matrix[self.j, self.i] = values
        return matrix

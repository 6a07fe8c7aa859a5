"""How sure each partial correlation is: a step without the penalty, and its sampling spread.

A penalty draws theta towards its centre, and an estimate says by itself neither how far nor how
much it would vary over tables. From the estimate t a Newton step on J_NCE without the penalty,

    t_d = t + J⁻¹ g,   g = mean s_i(t),   J = 1/n sum h (1 - h) T Tᵀ,

takes the penalty's bias off to first order, with s_i the score of data row i and its noise rows,
and J that of `information.py`. The variance of t_d is not J⁻¹ / n, as NCE is not maximum
likelihood, but

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

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from vnce_engine.contrastive.prepared import RowSample
from vnce_engine.distributions.information import to_matrix, to_slope, upper_triangle
from vnce_engine.inference.result import Uncertainty
from vnce_engine.runtime.progress import Progress

# Entries of theta up to which J is made as a matrix: 108 columns, 290 MB.
MOST_PARAMETERS = 6_000
# Numbers in the scores of as many rows as are handled at a time.
_CHUNK = 2**22


@dataclass(frozen=True)
class UnpenalisedStep:
    """The step from an estimate, under which the `sample` has its missing cells drawn."""

    sample: RowSample
    augmented: Tensor
    """A (d + 1, d + 1), the estimate."""
    free: Tensor
    """int64: the entries of theta that are estimated."""
    factor: Tensor
    """Cholesky factor of J in those entries."""
    mean: Tensor
    """g (p, 1)"""
    pairs: "_Pairs"
    """The partial correlations at the step's end."""

    @classmethod
    def of(
        cls, sample: RowSample, augmented: Tensor, is_estimated: Tensor, progress: Progress
    ) -> "UnpenalisedStep | None":
        """Take the step, None where J has no inverse; missing cells are drawn anew.

        `augmented` is A (d + 1, d + 1) at an optimum, or near it, of the `sample`'s penalised
        objective; `is_estimated`, bool of its shape, is False for a linear term that is held at
        zero.
        """
        sample.redraw(augmented)
        size, num_rows = len(augmented), sample.num_rows
        free = is_estimated[upper_triangle(size, augmented.device)].nonzero().flatten()
        information = sample.information(augmented)[free][:, free] / num_rows
        factor, info = torch.linalg.cholesky_ex(information)
        if info != 0:
            return None
        mean = to_slope(sample.terms(augmented, progress)[1]).unsqueeze(1) / num_rows
        step = _solved(mean, free, factor).squeeze(1)
        pairs = _Pairs.of(augmented + to_matrix(step, size))
        return cls(sample, augmented, free, factor, mean, pairs)

    @property
    def largest_change(self) -> float:
        """The largest change of a partial correlation; NaN where a K_ii came out negative."""
        change = self.pairs.correlation - _Pairs.of(self.augmented).correlation
        return float(change.abs().max())

    def uncertainty(self) -> Uncertainty:
        """Return how sure the partial correlations at its end are."""
        pairs, num_rows = self.pairs, self.sample.num_rows
        covariance = self.mean.new_zeros((len(self.augmented) - 1,) * 3)
        null_squares = torch.zeros_like(pairs.correlation)
        rows = self.sample.data_rows().sort().values
        for chunk in rows.split(max(1, _CHUNK // len(self.mean))):
            is_kept = torch.zeros(int(rows[-1]) + 1, dtype=torch.bool, device=rows.device)
            is_kept[chunk] = True
            deviations = self.sample.scores(self.augmented, is_kept).mT - self.mean
            moved = _solved(deviations, self.free, self.factor)
            null_squares += pairs.change_from_zero(moved).square().sum(dim=1)
            by_column = pairs.to_matrix(pairs.change(moved), diagonal=0.0)
            covariance += by_column @ by_column.mT
        return Uncertainty(
            pairs.to_matrix(pairs.correlation, diagonal=1.0).cpu(),
            pairs.to_matrix(null_squares.sqrt() / num_rows, diagonal=0.0).cpu(),
            covariance.cpu() / num_rows**2,
        )


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
    def of(cls, augmented: Tensor) -> "_Pairs":
        line, column = upper_triangle(len(augmented), augmented.device)
        of_column = column < len(augmented) - 1
        of_pair = ((line < column) & of_column).nonzero().flatten()
        of_diagonal = ((line == column) & of_column).nonzero().flatten()
        i, j = line[of_pair], column[of_pair]
        scale = augmented.diagonal()[:-1].rsqrt()
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

"""How sure each partial correlation is: a step without the penalty, and its sampling spread.

A penalty draws theta towards its centre, and an estimate says by itself neither how far nor how
much it would vary over tables. From the estimate t a Newton step without the penalty,

    t_d = t + J⁻¹ g,   g = mean s_i(t),

takes the penalty's bias off to first order, with s_i the score of row i, and J its information. Of
the truncated model they are those of the likelihood (`likelihood_rows.py`); of the Gaussian, whose
noise is near the data, those of J_NCE, with a row's noise rows (`information.py`). The variance of
t_d is J⁻¹ / n where the model is true and s_i the likelihood's; whatever they are it is

    C = J⁻¹ V J⁻¹ / n,   V the variance over rows of s_i.

Rows of one cluster are dependent. With S_g the sum of a cluster's scores, less their mean, and G
clusters it is then

    V = c sum S_g S_gᵀ / n,   c = G / (G - 1) · (n - 1) / n,

the usual factor, which is 1 where each row is a cluster. Its rank is below G: of a single pair of
columns it says what it can, and Student's t with G - 1 degrees of freedom what it cannot.

Each partial correlation is a smooth function of theta, and the covariance of two is the mean
product, over n, of what each row adds to them to first order, so that C itself is never made. The
test of a zero goes by what rows add to K_ij alone: the spread of K_ii plays no part under the
hypothesis, and where cells are missing it makes estimates far from zero look surer than they are.

Sources: Gutmann and Hyvärinen (2012), "Noise-contrastive estimation of unnormalized statistical
models", J. Mach. Learn. Res. 13, Theorem 3, for the asymptotic variance; White (1982), "Maximum
likelihood estimation of misspecified models", Econometrica 50, for the sandwich; Cameron
and Miller (2015), "A practitioner's guide to cluster-robust inference", J. Hum. Resour. 50, for
clusters; van de Geer, Bühlmann, Ritov and Dezeure (2014), "On asymptotically optimal confidence
regions and tests for high-dimensional models", Ann. Stat. 42, for the step.
"""

import math
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
    clusters: Tensor | None
    """int64: the cluster of each row of the table; None where rows are independent."""

    @classmethod
    def of(
        cls,
        rows: ScoredRows,
        augmented: Tensor,
        is_estimated: Tensor,
        clusters: Tensor | None = None,
    ) -> "UnpenalisedStep | None":
        """Take the step, None where J or K has no inverse; missing cells are drawn anew.

        `augmented` is A (d + 1, d + 1) at an optimum, or near it, of a penalised objective;
        `is_estimated`, bool of its shape, is False for a linear term that is held at zero;
        `clusters`, int64 by row of the table, has a code of each where rows are dependent.
        """
        if not is_positive_definite(augmented[:-1, :-1]):
            return None
        rows.redraw(augmented)
        return cls._of_drawn(rows, augmented, is_estimated, clusters)

    def with_estimated(self, is_estimated: Tensor) -> "UnpenalisedStep | None":
        """Return the step in which other entries are estimated, from the same draws."""
        return self._of_drawn(self.rows, self.augmented, is_estimated, self.clusters)

    @classmethod
    def _of_drawn(
        cls,
        rows: ScoredRows,
        augmented: Tensor,
        is_estimated: Tensor,
        clusters: Tensor | None,
    ) -> "UnpenalisedStep | None":
        size = len(augmented)
        free = is_estimated[upper_triangle(size, augmented.device)].nonzero().flatten()
        information = rows.information(augmented)[free][:, free] / rows.num_rows
        factor, info = torch.linalg.cholesky_ex(information)
        if info != 0:
            return None
        chunks = _scores(rows, augmented, rows.data_rows().sort().values)
        sums = [scores.sum(dim=1, keepdim=True) for _, scores in chunks]
        mean = torch.stack(sums).sum(dim=0) / rows.num_rows
        change = to_matrix(_solved(mean, free, factor).squeeze(1), size)
        pairs = _Pairs.of(augmented + change, _LEAST_SHARE * augmented.diagonal()[:-1])
        return cls(rows, augmented, free, factor, mean, change, pairs, clusters)

    @property
    def distance(self) -> float:
        """How far the rows are from the estimate, n gᵀ J⁻¹ g, less what drawn rows' chance adds."""
        solved = _solved(self.mean, self.free, self.factor)
        _, by_chance = self._distances
        return self.rows.num_rows * float((self.mean * solved).sum()) - by_chance

    @property
    def expected_distance(self) -> float:
        """How far they are from the truth in the mean over tables, tr(J⁻¹ V)."""
        return self._distances[0]

    @cached_property
    def _distances(self) -> tuple[float, float]:
        """Return tr(J⁻¹ V), and what drawn rows' chance adds to it."""

        def squares(parts: Tensor) -> float:
            return float((parts * _solved(parts, self.free, self.factor)).sum()) / num_rows

        num_rows, chance = self.rows.num_rows, self.rows.chance
        expected = by_chance = 0.0
        for deviations, sums in self._deviations():
            of_sums = squares(sums)
            expected += of_sums
            if chance:
                by_chance += chance * (of_sums if sums is deviations else squares(deviations))
        return expected, by_chance

    def p_value(self, is_tested: Tensor) -> float:
        """Return the p-value of Wald's test that some entries of A, bool of its shape, are zero."""
        lines = upper_triangle(len(self.augmented), self.mean.device)
        index = is_tested[lines].nonzero().flatten()
        parts = [_solved(part, self.free, self.factor)[index] for part in self._parts()]
        moved = torch.cat(parts, dim=1) / self.rows.num_rows
        end = (self.augmented + self.change)[lines][index]
        statistic = end @ torch.linalg.solve(moved @ moved.mT, end)
        return float(chi2.sf(float(statistic), len(index)))

    def uncertainty(self) -> Uncertainty:
        """Return how sure the partial correlations at its end are."""
        pairs, num_rows = self.pairs, self.rows.num_rows
        covariance = self.mean.new_zeros((len(self.augmented) - 1,) * 3)
        null_squares = torch.zeros_like(pairs.correlation)
        for part in self._parts():
            moved = _solved(part, self.free, self.factor)
            null_squares += pairs.change_from_zero(moved).square().sum(dim=1)
            by_column = pairs.to_matrix(pairs.change(moved), diagonal=0.0)
            covariance += by_column @ by_column.mT
        return Uncertainty(
            pairs.to_matrix(pairs.correlation, diagonal=1.0).cpu(),
            pairs.to_matrix(null_squares.sqrt() / num_rows, diagonal=0.0).cpu(),
            covariance.cpu() / num_rows**2,
        )

    def _parts(self) -> Iterator[Tensor]:
        """Yield independent parts (p, r) of the sum of scores: of rows, or clusters, and chance."""
        chance = self.rows.chance
        for deviations, sums in self._deviations():
            if sums is deviations:
                yield deviations * math.sqrt(1 + chance)
            else:
                yield sums
                if chance:
                    yield deviations * math.sqrt(chance)

    def _deviations(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield rows' scores less their mean (p, r), and their sums over clusters (p, g), in parts.

        The sums are times √c; without clusters they are those of rows themselves. Drawn rows'
        chance is in neither.
        """
        index = self.rows.data_rows().sort().values
        if self.clusters is None:
            for _, scores in _scores(self.rows, self.augmented, index):
                deviations = scores - self.mean
                yield deviations, deviations
            return
        of_row = self.clusters[index]
        number, n = int(of_row.max()) + 1, len(index)
        factor = math.sqrt(number / (number - 1) * (n - 1) / n)
        # A cluster of which more rows follow, and what its rows so far come to.
        last, begun = -1, torch.zeros_like(self.mean)
        for rows, scores in _scores(self.rows, self.augmented, index[of_row.argsort(stable=True)]):
            deviations, own = scores - self.mean, self.clusters[rows]
            first, end = int(own.min()), int(own.max())
            sums = torch.zeros_like(deviations[:, : end - first + 1])
            sums.index_add_(1, own - first, deviations)
            if last == first:
                sums[:, :1] += begun
            elif last >= 0:
                sums = torch.cat([begun, sums], dim=1)
            last, begun = end, sums[:, -1:]
            yield deviations, factor * sums[:, :-1]
        yield torch.zeros_like(begun), factor * begun

    def slope_draws(self, num_draws: int, generator: torch.Generator) -> Tensor:
        """Return (p, num_draws): normal draws of what n times the mean score has for its spread."""
        total = self.mean.new_zeros(len(self.mean), num_draws)
        for _, sums in self._deviations():
            shape = (sums.shape[1], num_draws)
            total += sums @ torch.randn(shape, dtype=total.dtype, generator=generator).to(sums)
        return total


def _scores(rows: ScoredRows, augmented: Tensor, order: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield some rows of the table (r,) after the other in about this order, and scores (p, r)."""
    num_parameters = len(upper_triangle(len(augmented), augmented.device)[0])
    num_rows = int(order.max()) + 1
    for chunk in order.split(max(1, _CHUNK // num_parameters)):
        is_kept = torch.zeros(num_rows, dtype=torch.bool, device=order.device)
        is_kept[chunk] = True
        yield chunk.sort().values, rows.scores(augmented, is_kept).mT


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

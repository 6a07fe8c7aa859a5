"""How two networks of the same columns differ: a test of each pair, and of the networks as a whole.

Debiased partial correlations r and r' of a pair, of tables that are independent, with standard
errors s and s', are compared by

    z = (r - r') / sqrt(s² + s'²).

Where both are equal its distribution is taken to be Student's t, as that of either network's
estimate is, with degrees of freedom by Welch and Satterthwaite: each standard error is estimated
from the rows that have both columns, n and n' of them, and

    (s² + s'²)² / (s⁴ / (n - 1) + s'⁴ / (n' - 1))

lies between the lesser of n - 1 and n' - 1, and their sum.

The networks as a whole are, by the largest |z| and by the sum of z² over pairs: the first sees few
large differences, the second many small ones. What they are where both tables are of one network is
told by tables among which rows have been permuted: with B of them, of which b have a statistic as
large, p = (1 + b) / (1 + B). Standard errors keep pairs of which little is known from drowning the
others, as they might in the largest difference of the Network Comparison Test.

Sources: Welch (1947), "The generalization of 'Student's' problem when several different population
variances are involved", Biometrika 34; van Borkulo et al. (2022), "Comparing network structures on
three aspects: A permutation test", Psychol. Methods 27; Phipson and Smyth (2010), "Permutation
p-values should never be zero", Stat. Appl. Genet. Mol. Biol. 9.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control
from scipy.stats import t as student

from vnce_engine.inference.interval import CONFIDENCE
from vnce_engine.inference.resamples import SMALLEST_SHARE_OK, Failure

FloatArray = NDArray[np.float64]

LACKS_ERRORS = "a pair has no standard error"


@dataclass(frozen=True)
class NetworkPair:
    """Two networks by their pairs i < j of columns, m of them, row by row; NaN where not known."""

    debiased: FloatArray
    """(2, m): the partial correlations of either network."""
    standard_error: FloatArray
    """(2, m)"""
    num_pairwise: FloatArray
    """(2, m): rows of either table that have both columns, or its clusters if those are fewer, from
    which that error is estimated."""

    @property
    def difference(self) -> FloatArray:
        """(m,): the first network's partial correlation minus the second's."""
        difference: FloatArray = self.debiased[0] - self.debiased[1]
        return difference

    @property
    def error(self) -> FloatArray:
        """(m,): standard error of the difference."""
        error: FloatArray = np.hypot(*self.standard_error)
        return error

    @property
    def z(self) -> FloatArray:
        """(m,): the difference in standard errors."""
        return self.difference / self.error

    @property
    def freedom(self) -> FloatArray:
        """(m,): degrees of freedom of z, by Welch and Satterthwaite."""
        shares = (self.standard_error / self.error) ** 2
        of_each = np.maximum(self.num_pairwise - 1, 1)
        freedom: FloatArray = 1 / (shares**2 / of_each).sum(axis=0)
        return freedom


@dataclass(frozen=True)
class Statistics:
    """How far two networks differ as a whole."""

    largest: float
    """The largest |z| of a pair."""
    sum_of_squares: float
    """The sum of z² over pairs."""

    @classmethod
    def of(cls, z: FloatArray) -> "Statistics":
        """Return those of z (m,), all of them known."""
        return cls(float(np.abs(z).max()), float(np.square(z).sum()))


@dataclass(frozen=True)
class GlobalTest:
    """Whether two networks differ at all, by one statistic."""

    statistic: float | None
    """None where no pair of columns has a z."""
    p_value: float | None
    """By permutations; None without them, and with a reason."""


@dataclass(frozen=True)
class Difference:
    """How two networks differ; pairs i < j of columns, m of them, row by row."""

    pairs: NDArray[np.int64]
    """(m, 2): the columns of each pair, by their places in the first network."""
    debiased: FloatArray
    """(2, m): partial correlations of either network, without the penalty's bias. NaN, as what
    follows, where they are not known."""
    difference: FloatArray
    """(m,): the first network's minus the second's."""
    standard_error: FloatArray
    lower: FloatArray
    upper: FloatArray
    """(m,): of the difference, and the ends of its 95 % interval."""
    z: FloatArray
    p_value: FloatArray
    """(m,): two-sided, of equal partial correlations, by Student's t."""
    q_value: FloatArray
    """(m,): the smallest false discovery rate, by Benjamini and Hochberg, at which the pair is
    among those that differ."""
    n_requested: int
    """Permutations asked for."""
    n_ok: int
    failures: Mapping[str, int]
    """How many permutations have no statistics, by cause."""
    reason: str | None
    """Why there are no p-values of the networks as a whole; None where there are."""
    largest: GlobalTest
    """By the largest |z|."""
    sum_of_squares: GlobalTest
    """By the sum of z²."""


def of_pairs(
    edges: Iterable[tuple[int, int, float | None, float | None, int]], num_columns: int
) -> FloatArray:
    """Return of pairs i < j of columns, row by row (3, m), what a side of a `NetworkPair` has.

    An edge is two columns, in any order, and those: NaN, all three, where one is not known.
    """
    known = np.full((3, num_columns, num_columns), np.nan)
    for i, j, debiased, standard_error, num_pairwise in edges:
        if debiased is not None and standard_error is not None:
            known[:, [i, j], [j, i]] = [[debiased], [standard_error], [num_pairwise]]
    return known[:, *np.triu_indices(num_columns, k=1)]


def compare_pairs(
    observed: NetworkPair,
    permuted: Sequence[NetworkPair | Failure],
    num_columns: int,
    n_requested: int,
) -> Difference:
    """Return how two networks differ, and what permutations say of it.

    Pairs without a z are left out of the statistics; a permutation in which another lacks one has
    failed. Where fewer than half of the permutations requested are left, there is no p-value.
    """
    known = ~np.isnan(observed.z)
    outcomes = [_statistics(one, known) for one in permuted] if known.any() else []
    ok = [one for one in outcomes if isinstance(one, Statistics)]
    failures = Counter(one.cause for one in outcomes if isinstance(one, Failure))
    p_value = 2 * student.sf(np.abs(observed.z), observed.freedom)
    difference = observed.difference
    width = student.isf((1 - CONFIDENCE) / 2, observed.freedom) * observed.error
    reason = _reason(len(ok), n_requested, has_statistics=bool(known.any()))

    def test(name: str) -> GlobalTest:
        if not known.any():
            return GlobalTest(None, None)
        value = getattr(Statistics.of(observed.z[known]), name)
        if reason is not None:
            return GlobalTest(value, None)
        as_large = sum(getattr(one, name) >= value for one in ok)
        return GlobalTest(value, (1 + as_large) / (1 + len(ok)))

    return Difference(
        pairs=np.column_stack(np.triu_indices(num_columns, k=1)),
        debiased=observed.debiased,
        difference=difference,
        standard_error=observed.error,
        lower=(difference - width).clip(-2.0, 2.0),
        upper=(difference + width).clip(-2.0, 2.0),
        z=observed.z,
        p_value=p_value,
        q_value=_adjusted(p_value, known),
        n_requested=n_requested,
        n_ok=len(ok),
        failures=dict(failures),
        reason=reason,
        largest=test("largest"),
        sum_of_squares=test("sum_of_squares"),
    )


def _statistics(outcome: NetworkPair | Failure, known: NDArray[np.bool_]) -> Statistics | Failure:
    if isinstance(outcome, Failure):
        return outcome
    z = outcome.z[known]
    return Failure(LACKS_ERRORS) if np.isnan(z).any() else Statistics.of(z)


def _reason(n_ok: int, n_requested: int, *, has_statistics: bool) -> str | None:
    if not has_statistics:
        return "no pair of columns has standard errors in both networks"
    if n_requested == 0:
        return "no permutations were asked for"
    if n_ok < math.ceil(SMALLEST_SHARE_OK * n_requested):
        return (
            f"{n_ok} of {n_requested} permutations have two networks with standard errors, fewer "
            f"than {SMALLEST_SHARE_OK:.0%}"
        )
    return None


def _adjusted(p_value: FloatArray, known: NDArray[np.bool_]) -> FloatArray:
    q_value = np.full_like(p_value, np.nan)
    if known.any():
        q_value[known] = false_discovery_control(p_value[known])
    return q_value

"""What fits to resampled rows say of a network: spreads of edges and strengths, and their ranks."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

FloatArray = NDArray[np.float64]

# Ends of the percentile intervals, in per cent.
INTERVAL = (2.5, 97.5)
# Figures of fewer of the resamples that were asked for would be those of the lucky ones.
SMALLEST_SHARE_OK = 0.5


@dataclass(frozen=True)
class Failure:
    """A resample, or a permutation, without what was to come of it."""

    cause: str
    """Why, in a word or a sentence that many may have."""


@dataclass(frozen=True)
class Network:
    """A network by its pairs i < j of columns, m of them, row by row."""

    partial_correlation: FloatArray
    """(m,), NaN where K is not positive definite."""
    debiased: FloatArray
    """(m,), without the penalty's bias; NaN where that is not known."""
    selected: FloatArray
    """(m,), 1 where the pair is selected and 0 where not."""

    @property
    def value(self) -> FloatArray:
        """Return each partial correlation (m,), without bias where that is known."""
        return np.where(np.isnan(self.debiased), self.partial_correlation, self.debiased)

    @property
    def size(self) -> FloatArray:
        """Return the size of each of these (m,)."""
        return np.abs(self.value)


@dataclass(frozen=True)
class Spread:
    """How a number varies over resamples; one of all arrays for each pair or column.

    NaN where fewer than half of the resamples have it.
    """

    mean: FloatArray
    standard_deviation: FloatArray
    lower: FloatArray
    upper: FloatArray
    """Ends of the 95 % percentile interval."""
    count: NDArray[np.int64]
    """Resamples that have the number."""

    @classmethod
    def of(cls, values: FloatArray, fewest: float) -> Self:
        """Return that of values (b, m), NaN where a resample has none."""
        count = (~np.isnan(values)).sum(axis=0)
        is_known = count >= max(fewest, 2)
        kept = np.where(is_known, values, np.nan)
        mean, deviation, lower, upper = np.full((4, values.shape[1]), np.nan)
        if is_known.any():
            known = kept[:, is_known]
            mean[is_known] = np.nanmean(known, axis=0)
            deviation[is_known] = np.nanstd(known, axis=0, ddof=1)
            lower[is_known], upper[is_known] = np.nanpercentile(known, INTERVAL, axis=0)
        return cls(mean, deviation, lower, upper, count)


@dataclass(frozen=True)
class Bootstrap:
    """How the network varies over resamples; pairs i < j of columns, m of them, row by row."""

    n_requested: int
    n_ok: int
    failures: Mapping[str, int]
    """How many resamples have no network, by cause."""
    reason: str | None
    """Why no shares and intervals are given; None where they are."""
    pairs: NDArray[np.int64]
    """(m, 2): the columns of each pair."""
    inclusion: FloatArray
    """(m,): share of the resamples with partial correlations that have the pair selected."""
    partial_correlation: Spread
    """(m,): as it is estimated, drawn in by the penalty. Its interval is where estimates fall, and
    not one for the true value, which it may miss by the penalty's bias."""
    debiased: Spread
    """(m,): without that bias; an interval for the true value."""
    strength: Spread
    """(d,): of each column's strength centrality, the sum of the sizes of the partial correlations,
    without bias where that is known, of its selected pairs."""
    rank_correlation: float | None
    """Mean over resamples of Spearman's correlation of the sizes of their partial correlations,
    without bias where that is known, with those of the whole table."""
    top_kept: float | None
    """As many pairs as were selected of the whole table come first there; the mean share of them
    that do in a resample. None where none was selected."""
    strength_rank_correlation: float | None
    """As `rank_correlation`, of the columns' strengths."""


def summarise(
    outcomes: Sequence[Network | Failure], whole: Network, num_columns: int, n_requested: int
) -> Bootstrap:
    """Return what resamples say of the network of the whole table.

    Where fewer than half of the resamples that were requested have a network, no figure is given.
    """
    ok = [outcome for outcome in outcomes if isinstance(outcome, Network)]
    failures = Counter(one.cause for one in outcomes if isinstance(one, Failure))
    fewest = math.ceil(SMALLEST_SHARE_OK * n_requested)
    reason = None
    if len(ok) < fewest:
        reason = (
            f"{len(ok)} of {n_requested} resamples have a network, fewer than "
            f"{SMALLEST_SHARE_OK:.0%}: no shares and intervals are given"
        )
    judged = ok if reason is None else []
    rows, columns = np.triu_indices(num_columns, k=1)
    correlation, debiased, selected, size = (
        np.array([getattr(one, name) for one in judged]).reshape(len(judged), len(rows))
        for name in ("partial_correlation", "debiased", "selected", "size")
    )
    incidence = np.eye(num_columns)[rows] + np.eye(num_columns)[columns]  # of pairs and columns
    strength = (selected * size) @ incidence
    of_whole = (whole.selected * whole.size) @ incidence
    return Bootstrap(
        n_requested=n_requested,
        n_ok=len(ok),
        failures=dict(failures),
        reason=reason,
        pairs=np.column_stack([rows, columns]),
        inclusion=Spread.of(np.where(np.isnan(correlation), np.nan, selected), fewest).mean,
        partial_correlation=Spread.of(correlation, fewest),
        debiased=Spread.of(debiased, fewest),
        strength=Spread.of(strength, fewest),
        rank_correlation=_rank_correlation(whole.size, size),
        top_kept=_top_kept(whole.size, size, int(whole.selected.sum())),
        strength_rank_correlation=_rank_correlation(of_whole, strength),
    )


def _rank_correlation(whole: FloatArray, resamples: FloatArray) -> float | None:
    """Return the mean of Spearman's correlations of (b, m) with (m,); None where there is none.

    Resamples without all numbers, or without two different ones, have none.
    """
    ranks = rankdata(resamples[~np.isnan(resamples).any(axis=1)], axis=1)
    ranks = ranks[(ranks != ranks[:, :1]).any(axis=1)]
    of_whole = rankdata(whole)
    if not len(ranks) or np.isnan(whole).any() or (of_whole == of_whole[0]).all():
        return None
    return float(np.corrcoef(of_whole, ranks)[0, 1:].mean())


def _top_kept(whole: FloatArray, resamples: FloatArray, top: int) -> float | None:
    """Return the mean share of the `top` largest of (m,) that are among them in rows of (b, m)."""
    known = resamples[~np.isnan(resamples).any(axis=1)]
    if not top or not len(known) or np.isnan(whole).any():
        return None
    first = _largest(whole[None], top)
    return float((_largest(known, top) & first).sum(axis=1).mean() / top)


def _largest(values: FloatArray, top: int) -> NDArray[np.bool_]:
    """Return which of each row (b, m) are among its `top` largest; ties keep their order."""
    places = np.argsort(np.argsort(-values, axis=1, kind="stable"), axis=1)
    return places < top

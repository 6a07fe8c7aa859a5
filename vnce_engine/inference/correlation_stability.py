"""How many rows may be left out before a network's edges and centralities change their order.

Of each share of the rows that is dropped some subsets are fitted, and what comes out is correlated
with the same of the whole table. The correlation stability coefficient is the largest share at
which, as at all smaller ones, the correlation is at least .7 with a probability of at least .95; of
centralities that are to be interpreted it should not be below .25, and better be above .5.

Source: Epskamp, Borsboom and Fried (2018), "Estimating psychological networks and their accuracy: A
tutorial paper", Behav. Res. Methods 50.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vnce_engine.inference.resamples import Failure, Network

FloatArray = NDArray[np.float64]

# Shares of the rows that subsets lack, in turn.
DROPPED: tuple[float, ...] = tuple(np.linspace(0.05, 0.75, 10).round(3).tolist())
LEAST_CORRELATION = 0.7
PROBABILITY = 0.95


@dataclass(frozen=True)
class StatisticStability:
    """How one statistic of subsets is correlated with that of the whole table."""

    mean: FloatArray
    """(l,): of the correlations of each share's subsets, NaN where none has one; 0 counts for a
    subset of which all are the same."""
    lower: FloatArray
    """(l,): their fifth percentile."""
    agreeing: FloatArray
    """(l,): the share of subsets whose correlation is at least .7; NaN where there is no subset.
    One without a network does not agree."""
    coefficient: float | None
    """The largest share dropped at which, as at all smaller ones, .95 of the subsets agree; 0 where
    there is none. None where the whole table has no statistic, or the same for all."""


@dataclass(frozen=True)
class CorrelationStability:
    """How many rows may be dropped; l shares of them, in ascending order."""

    dropped: FloatArray
    """(l,): the shares of the rows that are dropped."""
    n_requested: NDArray[np.int64]
    """(l,): subsets asked for of each."""
    n_ok: NDArray[np.int64]
    """(l,): those that have a network."""
    failures: Mapping[str, int]
    """How many subsets have no network, by cause."""
    edges: StatisticStability
    """Of partial correlations, all pairs, without bias where that is known."""
    strength: StatisticStability
    """Of each variable's sum of the sizes of those of its selected pairs."""
    expected_influence: StatisticStability
    """Of each variable's sum of those of all its pairs, with their signs."""


def dropped_of(number: int) -> float:
    """Return the share of the rows that a numbered subset lacks."""
    return DROPPED[number % len(DROPPED)]


def correlate(
    outcomes: Sequence[Network | Failure], whole: Network, num_columns: int
) -> CorrelationStability:
    """Return what subsets, numbered from 0, say of the whole table's network."""
    shares = np.array([dropped_of(number) for number in range(len(outcomes))])
    levels = np.array(DROPPED)
    ok = np.array([isinstance(one, Network) for one in outcomes], dtype=bool)
    of_level = shares == levels[:, None]  # (l, b)
    whole_statistics = _statistics(whole, num_columns)
    correlations = np.full((len(whole_statistics), len(outcomes)), np.nan)
    for place, one in enumerate(outcomes):
        if isinstance(one, Network):
            of_subset = _statistics(one, num_columns)
            correlations[:, place] = [
                _correlation(*pair) for pair in zip(of_subset, whole_statistics, strict=True)
            ]
    edges, strength, influence = (
        _stability(of_each, of_level, levels, has_any=_varies(statistic))
        for of_each, statistic in zip(correlations, whole_statistics, strict=True)
    )
    return CorrelationStability(
        dropped=levels,
        n_requested=of_level.sum(axis=1),
        n_ok=(of_level & ok).sum(axis=1),
        failures=dict(Counter(one.cause for one in outcomes if isinstance(one, Failure))),
        edges=edges,
        strength=strength,
        expected_influence=influence,
    )


def _statistics(network: Network, num_columns: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the pairs' values (m,), the columns' strengths (d,) and their influences (d,)."""
    rows, columns = np.triu_indices(num_columns, k=1)
    incidence = np.eye(num_columns)[rows] + np.eye(num_columns)[columns]  # of pairs and columns
    values = network.value
    return values, (network.selected * network.size) @ incidence, values @ incidence


def _correlation(of_subset: FloatArray, of_whole: FloatArray) -> float:
    """Return Pearson's; 0 where a subset's are all the same, NaN where there is none."""
    if not _varies(of_whole) or np.isnan(of_subset).any():
        return np.nan
    return float(np.corrcoef(of_subset, of_whole)[0, 1]) if _varies(of_subset) else 0.0


def _varies(values: FloatArray) -> bool:
    return not np.isnan(values).any() and bool((values != values[0]).any())


def _stability(
    correlations: FloatArray, of_level: NDArray[np.bool_], levels: FloatArray, *, has_any: bool
) -> StatisticStability:
    mean, lower, agreeing = np.full((3, len(levels)), np.nan)
    for level, chosen in enumerate(of_level):
        known = correlations[chosen & ~np.isnan(correlations)]
        if chosen.any():
            agreeing[level] = (known >= LEAST_CORRELATION).sum() / chosen.sum()
        if len(known):
            mean[level], lower[level] = known.mean(), np.quantile(known, 1 - PROBABILITY)
    # By chance a few subsets of a larger share may agree where those of a smaller one do not.
    stable = levels[np.logical_and.accumulate(agreeing >= PROBABILITY)]
    coefficient = float(stable.max()) if len(stable) else 0.0
    return StatisticStability(mean, lower, agreeing, coefficient if has_any else None)

"""Which transform describes a table: by the log density of rows that a fit has not seen.

The density is that of the observed cells in the table's own units (`inference/log_density.py`), so
that transforms are on an equal footing. All are judged on the same folds, by short fits of one
penalty, and compared row by row. A cell of 0, where some transforms are infinitely steep, counts as
the values up to half of the least positive one of its column.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import norm
from torch import Tensor

from vnce_engine.data.clusters import Codes, deal
from vnce_engine.data.observations import Observations
from vnce_engine.data.table_transform import RANK_NORMAL, TRANSFORMS, TableTransform, least_positive
from vnce_engine.distributions import truncated_normal
from vnce_engine.runtime.checks import listed
from vnce_engine.runtime.progress import Progress
from vnce_engine.selection.held_out_gains import mean_and_error

FloatArray = NDArray[np.float64]

# Rows that are enough to tell transforms apart, and the folds that they are dealt to.
_MOST_ROWS = 2_000
_NUM_FOLDS = 3
# Standard errors by which ranks, which follow a small table too closely, have to be better than
# the best of the others, and transforms of each column's own than the best for all.
_RANKS_GAIN, _COLUMNS_GAIN = 1.0, 2.0

# Takes transformed rows Y (n, d) and others (m, d); returns the log density of the others (m,) by a
# fit to Y.
Judge = Callable[[FloatArray, FloatArray, Progress], FloatArray]


@dataclass(frozen=True)
class TransformEvidence:
    """One of the choices that were compared, and what held-out rows say of it."""

    transform: str | tuple[str, ...]
    """That of all columns, or that of each."""
    log_density: float
    """Mean log density of held-out rows' observed cells, nats a row, in the table's units."""
    standard_error: float
    """Of its difference, row by row, from the best of those for all columns; 0 for that one."""
    chosen: bool


def choose_transform(
    X: FloatArray,
    names: Sequence[str],
    judge: Judge,
    progress: Progress,
    *,
    may_be_negative: bool,
    seed: int,
    clusters: Codes | None = None,
) -> tuple[TransformEvidence, ...]:
    """Return what was compared for X (n, d), the columns of which have `names`; one is chosen.

    `judge` fits the model, whose columns `may_be_negative` or not; `clusters` (n,) has the cluster
    of each row where rows are dependent. The best transform for all
    columns is chosen, "rank-normal" if it is better than the others by a standard error; or, for
    each column, that which describes it best by itself, where that is better by two. Raises
    `FitCancelledError`, and `ValueError` where a column has no two different values without the
    rows of some fold.
    """
    candidates = ("none", RANK_NORMAL) if (X < 0).any() else TRANSFORMS
    rng = np.random.default_rng(seed)
    kept = np.flatnonzero(~np.isnan(X).all(axis=1))
    drawn = rng.permutation(kept)[:_MOST_ROWS]
    table = Observations.from_array(X, clusters).of_rows(torch.from_numpy(drawn))
    own = table.shared_clusters
    # Rows have been drawn at random already.
    folds = np.array_split(np.arange(len(drawn)), _NUM_FOLDS)
    if own is not None:
        folds = deal(len(drawn), own.numpy(), _NUM_FOLDS, rng)
    trials = _Trials(table.to_array(), folds, judge, may_be_negative, progress)
    trials.refuse_constant_columns(names)
    num_columns, num_trials = X.shape[1], len(candidates) + 1
    compared = [(name,) * num_columns for name in candidates]
    held_out = []
    for position, columns in enumerate(compared):
        progress.enter_part(position / num_trials, (position + 1) / num_trials)
        held_out.append(trials.held_out(columns))
    best = int(np.argmax([values.mean() for values in held_out[:-1]]))
    if _gains(held_out[-1] - held_out[best], own, _RANKS_GAIN):
        best = len(candidates) - 1
    chosen = best
    by_itself = np.stack([trials.by_itself(columns) for columns in compared])
    mixed = _best_of_columns(candidates, by_itself.sum(axis=1))
    if mixed not in compared:
        progress.enter_part(1 - 1 / num_trials, 1.0)
        # Of a fold the columns' transforms are chosen by the others, so that it may judge them.
        without = by_itself.sum(axis=1, keepdims=True) - by_itself
        of_folds = [_best_of_columns(candidates, without[:, fold]) for fold in range(_NUM_FOLDS)]
        compared.append(mixed)
        held_out.append(trials.held_out(*of_folds))
        if _gains(held_out[-1] - held_out[best], own, _COLUMNS_GAIN):
            chosen = len(compared) - 1
    return tuple(
        TransformEvidence(
            columns if len(set(columns)) > 1 else columns[0],
            float(values.mean()),
            mean_and_error(torch.from_numpy(values - held_out[best]), own)[1],
            position == chosen,
        )
        for position, (columns, values) in enumerate(zip(compared, held_out, strict=True))
    )


def _gains(differences: FloatArray, clusters: Tensor | None, standard_errors: float) -> bool:
    """Return whether the mean of row-wise differences (n,) exceeds so many of its errors."""
    gain, error = mean_and_error(torch.from_numpy(differences), clusters)
    return gain > standard_errors * error


def _best_of_columns(candidates: Sequence[str], log_density: FloatArray) -> tuple[str, ...]:
    """Return for each column the best candidate, of log densities (candidates, d)."""
    return tuple(candidates[int(position)] for position in log_density.argmax(axis=0))


class _Trials:
    """Rows (n, d) in folds, each of which is judged by what a fit makes of the others."""

    def __init__(
        self,
        rows: FloatArray,
        folds: Sequence[NDArray[np.intp]],
        judge: Judge,
        may_be_negative: bool,
        progress: Progress,
    ) -> None:
        self._rows, self._folds, self._judge = rows, folds, judge
        self._may_be_negative, self._progress = may_be_negative, progress
        self._least = least_positive(rows)

    def refuse_constant_columns(self, names: Sequence[str]) -> None:
        """Raise `ValueError` naming columns that have one value, or none, without some fold."""
        bad = set()
        for fold in self._folds:
            others = np.delete(self._rows, fold, axis=0)
            gap = np.isnan(others)
            lowest = np.where(gap, np.inf, others).min(axis=0)
            highest = np.where(gap, -np.inf, others).max(axis=0)
            bad |= set(np.flatnonzero(lowest >= highest).tolist())
        if bad:
            raise ValueError(
                "`column_transform='auto'` needs two different values of every column in each two "
                f"thirds of the rows: {listed([names[j] for j in sorted(bad)])}"
            )

    def held_out(self, *columns: Sequence[str]) -> FloatArray:
        """Return each row's log density (n,) by a fit that has not seen it.

        `columns` are the transforms of all folds, or those of each.
        """
        values = np.empty(len(self._rows))
        for fold, of_fold in zip(self._folds, columns * (_NUM_FOLDS // len(columns)), strict=True):
            transform, Y, judged = self._transformed(of_fold, fold)
            values[fold] = self._judge(Y, judged, self._progress)
            values[fold] += np.nansum(transform.log_slope(self._rows[fold], self._least), axis=1)
        return values

    def by_itself(self, columns: Sequence[str]) -> FloatArray:
        """Return the log density of each column by its own mean and spread, summed by fold.

        Shape (folds, d).
        """
        totals = []
        for fold in self._folds:
            transform, Y, judged = self._transformed(columns, fold)
            mean, variance = Observations.from_array(Y).moments()
            if self._may_be_negative:
                log_density = norm.logpdf(judged, mean, variance.sqrt())
            else:
                normal = truncated_normal.match_moments(mean, variance)
                log_density = truncated_normal.log_prob(torch.from_numpy(judged), *normal).numpy()
            log_density = log_density + transform.log_slope(self._rows[fold], self._least)
            totals.append(np.nansum(log_density, axis=0))
        return np.stack(totals)

    def _transformed(
        self, columns: Sequence[str], fold: NDArray[np.intp]
    ) -> tuple[TableTransform, FloatArray, FloatArray]:
        """Return the transforms without a fold, the other rows so transformed, and the fold's."""
        others = np.delete(self._rows, fold, axis=0)
        transform = TableTransform.fit(columns, others, may_be_negative=self._may_be_negative)
        return transform, transform.forward(others), transform.forward(self._rows[fold])

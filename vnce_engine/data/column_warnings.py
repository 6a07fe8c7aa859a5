"""What a reader should know about the columns of a table: odd ones, copies, pairs never seen."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vnce_engine.data.collinear import collinear_pairs, combinations
from vnce_engine.data.transforms import Transform
from vnce_engine.runtime.checks import MAX_NAMES, listed
from vnce_engine.runtime.reports import FitWarning

FloatArray = NDArray[np.float64]

# A column is nearly constant if fewer cells than this, or than this share, differ from its mode.
_FEW_CELLS = 5
_FEW_SHARE = 0.02
# Further above 0, in standard deviations, zero plays no part: no model without h describes such a
# column, and the stochastic gradient's steps get nowhere.
_FAR = 20.0


def column_warnings(
    X: FloatArray,
    names: Sequence[str],
    *,
    may_be_negative: bool,
    original: FloatArray,
) -> list[FitWarning]:
    """Return warnings about odd columns of a table, and pairs never seen together.

    X (n, d) is what a transform has made of `original`, of which totals are told too.
    """
    warnings = []
    if not may_be_negative and (
        heavy_tailed := [names[int(j)] for j in np.flatnonzero(_is_heavy_tailed(X))]
    ):
        warnings.append(
            FitWarning(
                "heavy-tailed-column",
                f"The spread exceeds the mean in {listed(heavy_tailed)}: no truncated normal has "
                f"tails so heavy. {_lighter(X, original)}",
                tuple(heavy_tailed),
            )
        )
    if not may_be_negative and (far := [names[int(j)] for j in np.flatnonzero(_is_far(X))]):
        warnings.append(
            FitWarning(
                "far-from-zero-column",
                f"The mean is more than {_FAR:g} standard deviations above 0 in {listed(far)}: "
                "zero plays no part there. Only a model with a linear term describes such columns, "
                "and stochastic gradients do not find it.",
                tuple(far),
            )
        )
    if nearly_constant := [names[j] for j in range(X.shape[1]) if _is_nearly_constant(X[:, j])]:
        warnings.append(
            FitWarning(
                "nearly-constant-column",
                f"Nearly all observed values are equal in {listed(nearly_constant)}: their edges "
                "rest on a handful of cells. Leave them out, or do not read their edges.",
                tuple(nearly_constant),
            )
        )
    if duplicates := _duplicate_pairs(X):
        warnings.append(
            FitWarning(
                "duplicate-columns",
                "Equal wherever both are observed: "
                f"{listed([f'{names[i]} and {names[j]}' for i, j in duplicates])}. One column of "
                "each pair should be left out.",
                _names_in(duplicates, names),
            )
        )
    pairs = [pair for pair in collinear_pairs(X) if pair not in duplicates]
    if pairs:
        warnings.append(
            FitWarning(
                "collinear-columns",
                "Correlated by more than .9999 in absolute value: "
                f"{listed([f'{names[i]} and {names[j]}' for i, j in pairs])}. What tells such "
                "columns apart is little more than rounding: one of each pair should be left out.",
                _names_in(pairs, names),
            )
        )
    made_up, where = combinations(X), ""
    if not made_up and original is not X:
        made_up, where = combinations(original), ", before the transform"
    if made_up:
        texts = [f"{names[j]} of {', '.join(names[i] for i in parts)}" for j, parts in made_up]
        warnings.append(
            FitWarning(
                "linearly-dependent",
                f"Linear combinations of other columns but for 1e-4 of their variance{where}: "
                f"{'; '.join(texts[:MAX_NAMES])}. Partial correlations among them are near 1 or "
                "-1, or mean nothing; one column of each combination should be left out.",
                _names_in([(j, i) for j, parts in made_up for i in parts], names),
            )
        )
    if unseen := _pairs_never_seen(X):
        warnings.append(
            FitWarning(
                "pair-never-observed",
                "Never observed in the same row: "
                f"{listed([f'{names[i]} and {names[j]}' for i, j in unseen])}. Their interaction "
                "rests on the model and its penalty alone. Leave one of them out, or do not "
                "interpret that edge.",
                _names_in(unseen, names),
            )
        )
    return warnings


def _names_in(pairs: Sequence[tuple[int, int]], names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of all columns in some pair, in the order of the table."""
    return tuple(names[j] for j in sorted({j for pair in pairs for j in pair}))


def _lighter(X: FloatArray, original: FloatArray) -> str:
    """Return which transform instead of the present one leaves no, or fewer, heavy tails."""
    left = {other: int(_is_heavy_tailed(other.forward(original)).sum()) for other in Transform}
    best = min(left, key=lambda other: left[other])  # of equals the weakest
    if left[best] >= _is_heavy_tailed(X).sum():
        return "None of the transforms leaves fewer such columns."
    remedy = "leaves none" if left[best] == 0 else f"leaves {left[best]}"
    return f'Try `column_transform="{best}"`, which {remedy}.'


def _is_heavy_tailed(X: FloatArray) -> NDArray[np.bool_]:
    """Return bool (d,): standard deviation above the mean, which an exponential has equal."""
    heavy: NDArray[np.bool_] = np.nanstd(X, axis=0) > np.nanmean(X, axis=0)
    return heavy


def _is_far(X: FloatArray) -> NDArray[np.bool_]:
    """Return bool (d,): mean so many standard deviations above 0 that truncation means nothing."""
    far: NDArray[np.bool_] = np.nanmean(X, axis=0) > _FAR * np.nanstd(X, axis=0)
    return far


def _is_nearly_constant(column: FloatArray) -> bool:
    _, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    others = counts.sum() - counts.max()
    # A small table may have few cells in all; then few different ones are no surprise.
    return bool(others < max(_FEW_CELLS, _FEW_SHARE * counts.sum()) and counts.max() > others)


def _duplicate_pairs(X: FloatArray) -> list[tuple[int, int]]:
    pairs = []
    for j in range(1, X.shape[1]):
        both = ~np.isnan(X[:, :j]) & ~np.isnan(X[:, j : j + 1])
        differs = ((X[:, :j] != X[:, j : j + 1]) & both).any(axis=0)
        same = both.any(axis=0) & ~differs
        pairs += [(int(i), j) for i in np.flatnonzero(same)]
    return pairs


def _pairs_never_seen(X: FloatArray) -> list[tuple[int, int]]:
    observed = (~np.isnan(X)).astype(np.float64)
    together = observed.T @ observed
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(together == 0, k=1))]

"""How well a precision matrix ranks the edges of a known graph."""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from vnce_engine.distributions.definiteness import SYMMETRY_TOLERANCE

FloatArray = NDArray[np.float64]


class EdgeScore(StrEnum):
    """What ranks the pairs; a larger score means that an edge is more likely.

    The signed scores look for one sign of association only, and for opposite ones: a positive
    K_ij is a negative scaled interaction. `PRECISION` is the paper's rule ("an element of K less
    than the threshold is no edge"), made for its simulated graphs, whose K_ij are all positive;
    `SCALED_INTERACTION` ranks positive association first and puts those same edges last.
    All four exist for an indefinite K too.
    """

    ABS_PRECISION = "abs_precision"
    PRECISION = "precision"
    ABS_SCALED_INTERACTION = "abs_scaled_interaction"
    SCALED_INTERACTION = "scaled_interaction"


@dataclass(frozen=True)
class EdgeROC:
    """The ROC curve over all pairs of variables, each counted once.

    The three sequences have equal length. A pair counts as an edge where its score is at least
    `thresholds[i]`; the first threshold is None, above every score, so that no pair does. With
    only edges, or none, among the pairs the curve is empty, `auc` None and `reason` says why.
    """

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]
    thresholds: tuple[float | None, ...]
    auc: float | None
    average_precision: float | None
    reason: str | None
    num_pairs: int
    num_edges: int


def scaled_interaction(precision: ArrayLike) -> FloatArray:
    """Return -K_ij / sqrt(K_ii K_jj) off the diagonal and 1 on it; exactly symmetric if K is.

    Free of the columns' units, and there for any K. Where K is positive definite these are the
    partial correlations of the parent Gaussian; where it is not they may be of any size.

    Raises `ValueError` if a diagonal entry is not positive.
    """
    matrix = np.asarray(precision, dtype=np.float64)
    diagonal = np.diagonal(matrix)
    if not (diagonal > 0).all():
        raise ValueError(f"`precision` must have a positive diagonal, got {diagonal.min()}")
    # The product of roots, not the root of the product, which may overflow or underflow.
    scale = np.sqrt(diagonal)
    interaction: FloatArray = -matrix / np.outer(scale, scale)
    np.fill_diagonal(interaction, 1.0)
    return interaction


def partial_correlation(interaction: FloatArray, *, is_positive_definite: bool) -> FloatArray:
    """Return the partial correlations of the scaled interactions (d, d) of a K; diagonal 1.

    NaN off the diagonal where K is not positive definite: without a parent Gaussian there are
    none. Others are within [-1, 1], beyond which rounding may have taken those of a nearly
    singular K.
    """
    if is_positive_definite:
        return interaction.clip(-1.0, 1.0)
    return np.where(np.eye(len(interaction), dtype=bool), 1.0, np.nan)


def edge_scores(precision: ArrayLike, score: EdgeScore) -> FloatArray:
    """Return the scores (d, d) of all pairs; the diagonal means nothing."""
    matrix = np.asarray(precision, dtype=np.float64)
    match score:
        case EdgeScore.ABS_PRECISION:
            return np.abs(matrix)
        case EdgeScore.PRECISION:
            return matrix
        case EdgeScore.ABS_SCALED_INTERACTION:
            return np.abs(scaled_interaction(matrix))
        case EdgeScore.SCALED_INTERACTION:
            return scaled_interaction(matrix)
        case _:
            assert_never(score)


def edge_roc(scores: ArrayLike, truth: ArrayLike) -> EdgeROC:
    """Compare symmetric scores (d, d) with a symmetric boolean adjacency matrix (d, d).

    Only pairs i < j count, so the diagonals are ignored. Equal scores share a point of the curve,
    and a tie between an edge and a non-edge counts one half in `auc`. `average_precision` is the
    mean precision over the edges in order of their scores, 1 if every pair is an edge.

    Raises `ValueError` on differing shapes, asymmetry, fewer than two variables or a non-finite
    score.
    """
    pair_scores, is_edge = _pairs(np.asarray(scores, dtype=np.float64), np.asarray(truth))
    num_pairs, num_edges = len(is_edge), int(is_edge.sum())
    if num_edges in (0, num_pairs):
        which = "no pair" if num_edges == 0 else "every pair"
        return EdgeROC(
            fpr=(),
            tpr=(),
            thresholds=(),
            auc=None,
            average_precision=None if num_edges == 0 else 1.0,
            reason=f"the true graph has an edge between {which}, so there is nothing to tell apart",
            num_pairs=num_pairs,
            num_edges=num_edges,
        )
    fpr, tpr, thresholds = roc_curve(is_edge, pair_scores, drop_intermediate=False)
    return EdgeROC(
        fpr=tuple(fpr.tolist()),
        tpr=tuple(tpr.tolist()),
        thresholds=(None, *thresholds[1:].tolist()),
        auc=float(roc_auc_score(is_edge, pair_scores)),
        average_precision=float(average_precision_score(is_edge, pair_scores)),
        reason=None,
        num_pairs=num_pairs,
        num_edges=num_edges,
    )


def _pairs(scores: FloatArray, truth: NDArray[np.bool_]) -> tuple[FloatArray, NDArray[np.bool_]]:
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1] or len(scores) < 2:
        raise ValueError(f"`scores` must be a square matrix of 2 or more, got shape {scores.shape}")
    if truth.shape != scores.shape:
        raise ValueError(f"`truth` must have the shape {scores.shape}, got {truth.shape}")
    if truth.dtype != np.bool_:
        raise ValueError(f"`truth` must be boolean, got {truth.dtype}")
    upper = np.triu_indices(len(scores), k=1)
    above, below = scores[upper], scores.T[upper]
    if not (np.isfinite(above).all() and np.isfinite(below).all()):
        raise ValueError("`scores` must be finite off the diagonal")
    if np.abs(above - below).max() > SYMMETRY_TOLERANCE * np.abs(above).max():
        raise ValueError("`scores` must be symmetric")
    if (truth[upper] != truth.T[upper]).any():
        raise ValueError("`truth` must be symmetric")
    return above, truth[upper]

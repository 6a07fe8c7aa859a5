"""The graphical lasso on an EM covariance, and two ways to choose its penalty.

Source: Friedman, Hastie and Tibshirani (2008); the criterion is that of Foygel and Drton (2010).
With missing cells the covariance is EM's and the criterion's likelihood that of the observed cells.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn import covariance as sklearn_covariance
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from vnce_engine.comparators.gaussian_em import (
    GaussianFit,
    fit_gaussian,
    observed_log_likelihoods,
)
from vnce_engine.comparators.standardised import NUM_FOLDS, StandardisedTable
from vnce_engine.data.clusters import error_of_mean
from vnce_engine.inference.result import PenaltyStep
from vnce_engine.penalties.penalty import PenaltyKind
from vnce_engine.runtime.progress import FitCancelledError, Progress
from vnce_engine.runtime.reports import FitStatus
from vnce_engine.selection.held_out_gains import has_fallen

FloatArray = NDArray[np.float64]

_NUM_STRENGTHS = 12
# The weakest penalty as a share of the strongest, which leaves no edge.
_WEAKEST = 0.01
_LEAST_STRONGEST = 1e-3
# Above the largest correlation by more than rounding, which would leave an edge of 1e-16.
_MARGIN = 1 + 1e-9
_MAX_ITERATIONS = 200
# Of the dual, in nats a row, at which a lasso has settled: far below the sampling error.
_DUAL_GAP = 1e-4
# Of the lasso of each column within it. A loose one leaves errors that no further pass takes away:
# gaps of strong penalties then stay open, on ordinary tables too.
_COLUMN_TOLERANCE = 1e-8
# Share of cross-validation's work that is done before strengths are compared.
_PARTS_SHARE = 0.5
# Falls in a row of the held-out likelihood after which a path of long fits ends.
_FALLS = 3


@dataclass(frozen=True)
class Lasso:
    """K at one strength."""

    strength: float
    precision: Tensor
    """(d, d), exactly symmetric; NaN where the lasso found none."""
    is_settled: bool
    """Whether the lasso's dual gap has closed."""

    @property
    def is_finite(self) -> bool:
        """Whether there is a K at all."""
        return bool(self.precision.isfinite().all())

    @property
    def num_edges(self) -> int:
        """Pairs whose interaction is not zero."""
        return int((self.precision.nan_to_num(nan=0.0).triu(1) != 0).sum())


@dataclass(frozen=True)
class LassoChoice:
    """The chosen fit, and the path that it was chosen from; no path where it was given."""

    fit: "LassoFit"
    path: tuple[PenaltyStep, ...] = ()
    is_settled: bool = True
    """Whether some candidate had settled, so that the choice is among such."""


def graphical_lasso(covariance: Tensor, strength: float) -> Lasso:
    """Return K by the graphical lasso on the correlations of a covariance (d, d)."""
    scale = covariance.diagonal().sqrt()
    lasso = lasso_of(covariance / torch.outer(scale, scale), strength)
    inverse = 1 / scale
    return replace(lasso, precision=lasso.precision * torch.outer(inverse, inverse))


def lasso_of(matrix: Tensor, strength: float) -> Lasso:
    """Return the K that maximises log det K - tr(K matrix) - strength sum_{i != j} |K_ij|."""
    try:
        with warnings.catch_warnings():
            # What it warns of is read from its dual gap.
            warnings.simplefilter("ignore", ConvergenceWarning)
            _, precision, costs = sklearn_covariance.graphical_lasso(
                matrix.numpy(),
                alpha=strength,
                tol=_DUAL_GAP,
                enet_tol=_COLUMN_TOLERANCE,
                max_iter=_MAX_ITERATIONS,
                return_costs=True,
            )
    except FloatingPointError:  # of a covariance that is all but singular
        return Lasso(strength, torch.full_like(matrix, torch.nan), is_settled=False)
    symmetric = torch.from_numpy(_symmetric(precision))
    return Lasso(strength, symmetric, is_settled=bool(abs(costs[-1][1]) < _DUAL_GAP))


@dataclass(frozen=True)
class LassoFit:
    """K at one strength, the mean (d,) beside it, and the EM they come from."""

    lasso: Lasso
    em: GaussianFit


class LassoPath(Protocol):
    """Fits of a table at falling strengths."""

    @property
    def strengths(self) -> Sequence[float]:
        """Strengths to choose from, strong to weak."""

    @property
    def ends_early(self) -> bool:
        """Whether fits take so long that paths end where held-out rows fit ever worse."""

    def at(self, strength: float, progress: Progress) -> LassoFit:
        """Return the fit at a strength; those of a path come from strong to weak."""

    def of(self, training: StandardisedTable, progress: Progress) -> "LassoPath":
        """Return the same of other rows; raise `FitCancelledError` when the caller says so."""


@dataclass(frozen=True)
class TwoStagePath:
    """The lasso of the covariance that EM has found without a penalty: for many rows."""

    em: GaussianFit
    max_iterations: int
    tolerance: float
    ends_early = False

    @property
    def strengths(self) -> Sequence[float]:
        """Strengths from the least that leaves no edge down to a hundredth of it."""
        return falling_strengths(self.em.spread.covariance, _WEAKEST)

    def at(self, strength: float, progress: Progress) -> LassoFit:
        """Return the lasso, a stage of the checkpoint."""
        return LassoFit(_kept(self.em.spread.covariance, strength, progress), self.em)

    def of(self, training: StandardisedTable, progress: Progress) -> "TwoStagePath":
        """Return that of EM's fit to other rows."""
        part = fit_gaussian(
            training,
            max_iterations=self.max_iterations,
            tolerance=self.tolerance,
            progress=progress,
            span=None,
        )
        if part.status is FitStatus.CANCELLED:
            raise FitCancelledError
        return replace(self, em=part)


def choose_by_ebic(
    path: LassoPath, table: StandardisedTable, gamma: float, progress: Progress
) -> LassoChoice:
    """Return the K of least extended Bayesian information criterion along the path.

    -2 log likelihood + E log n + 4 E gamma log d, with E edges and n rows.
    """
    num_rows, d = table.X.shape
    price = math.log(num_rows) + 4 * gamma * math.log(d)
    log_jacobian = table.log_jacobian().sum()
    fits: list[LassoFit] = []
    criteria: list[float] = []
    for i, strength in enumerate(path.strengths):
        progress.enter_part(i / len(path.strengths), (i + 1) / len(path.strengths))
        fit = path.at(strength, progress)
        log_likelihood = log_jacobian + _log_likelihoods(table.X, fit).sum()
        fits.append(fit)
        criteria.append(float(-2 * log_likelihood + fit.lasso.num_edges * price))
        progress.report(1.0, i + 1, None)
    is_candidate = [fit.lasso.is_settled for fit in fits]
    best = _best([-criterion for criterion in criteria], is_candidate)
    return LassoChoice(
        fits[best], _path(fits, criteria, [None] * len(fits), best), any(is_candidate)
    )


def choose_by_cross_validation(
    path: LassoPath, table: StandardisedTable, rng: np.random.Generator, progress: Progress
) -> LassoChoice:
    """Return K at the penalty of best observed-data likelihood on held-out rows, of three folds."""
    folds = table.folds(rng)
    parts = []
    for i, fold in enumerate(folds):
        progress.enter_part(*(_PARTS_SHARE * k / NUM_FOLDS for k in (i, i + 1)))
        parts.append(path.of(table.without(fold), progress))
    fits: list[LassoFit] = []
    held_out: list[FloatArray] = []
    is_candidate: list[bool] = []
    for j, strength in enumerate(path.strengths):
        start, end = (
            _PARTS_SHARE + (1 - _PARTS_SHARE) * k / len(path.strengths) for k in (j, j + 1)
        )
        progress.enter_part(start, end)
        fits.append(path.at(strength, progress))
        judged = [part.at(strength, progress) for part in parts]
        is_candidate.append(
            fits[-1].lasso.is_settled
            and all(fit.lasso.is_settled for fit in judged)
            and all(fit.em.status is FitStatus.CONVERGED for fit in judged)
        )
        held_out.append(_held_out(table, folds, judged))
        if not fits[-1].lasso.is_finite:
            held_out[-1].fill(-np.inf)  # nothing to choose
        progress.report(1.0, j + 1, None)
        if path.ends_early and has_fallen([float(rows.mean()) for rows in held_out], _FALLS):
            break
    scores = np.mean(held_out, axis=1)
    best = _best(scores.tolist(), is_candidate)
    with np.errstate(invalid="ignore"):  # where no fold has a K
        behind = [torch.from_numpy(held_out[best] - rows) for rows in held_out]
    errors = [error_of_mean(rows, table.clusters) for rows in behind]
    criteria = (scores + table.log_jacobian().mean()).tolist()
    steps = _path(fits, criteria, errors, best)
    return LassoChoice(fits[best], steps, any(is_candidate))


def _held_out(
    table: StandardisedTable, folds: Sequence[NDArray[np.intp]], judged: Sequence[LassoFit]
) -> FloatArray:
    """Return the log likelihood (n,) of each row under the fit that has not seen its fold."""
    log_likelihoods = np.empty(len(table.X))
    for fold, fit in zip(folds, judged, strict=True):
        log_likelihoods[fold] = _log_likelihoods(table.X[fold], fit)
    return log_likelihoods


def _kept(covariance: Tensor, strength: float, progress: Progress) -> Lasso:
    """Return the lasso, a stage of the checkpoint."""

    def compute() -> tuple[Tensor, bool]:
        lasso = graphical_lasso(covariance, strength)
        return lasso.precision, lasso.is_settled

    return Lasso(strength, *progress.checkpoint.once(compute))


def _log_likelihoods(X: FloatArray, fit: LassoFit) -> FloatArray:
    """Return the log likelihood (n,) of each row, -inf under a K that is none."""
    if not fit.lasso.is_finite:
        return np.full(len(X), -np.inf)
    return observed_log_likelihoods(X, fit.em.mean, fit.lasso.precision)


def _best(scores: Sequence[float], is_candidate: Sequence[bool]) -> int:
    """Return where the highest score is, of candidates if there are any.

    Raises `FloatingPointError` if no score is a number.
    """
    if not np.isfinite(scores).any():
        raise FloatingPointError("no strength has a K")
    may_win = is_candidate if any(is_candidate) else [True] * len(scores)
    return int(np.argmax(np.where(may_win, scores, -np.inf)))


def _path(
    fits: Sequence[LassoFit],
    criteria: Sequence[float],
    errors: Sequence[float | None],
    best: int,
) -> tuple[PenaltyStep, ...]:
    return tuple(
        PenaltyStep(
            PenaltyKind.L1, fit.lasso.strength, criterion, error, fit.lasso.num_edges, i == best
        )
        for i, (fit, criterion, error) in enumerate(zip(fits, criteria, errors, strict=True))
    )


def falling_strengths(covariance: Tensor, weakest: float) -> list[float]:
    """Return penalties from the least that leaves no edge down, evenly on a log scale.

    `weakest` is the last as a share of the first.
    """
    root = covariance.diagonal().rsqrt()
    correlation = covariance * torch.outer(root, root)
    strongest = float((correlation - torch.diag(correlation.diagonal())).abs().max())
    # Columns may be uncorrelated to the bit.
    strongest = _MARGIN * max(strongest, _LEAST_STRONGEST)
    return [float(s) for s in np.geomspace(strongest, weakest * strongest, _NUM_STRENGTHS)]


def _symmetric(matrix: FloatArray) -> FloatArray:
    """Return its symmetric part; an entry is zero if either of the two is, by rounding."""
    zero = (matrix == 0) | (matrix.T == 0)
    return np.where(zero, 0.0, 0.5 * (matrix + matrix.T))

"""The graphical lasso on an EM covariance, and two ways to choose its penalty.

Source: Friedman, Hastie and Tibshirani (2008); the criterion is that of Foygel and Drton (2010).
With missing cells the covariance is EM's and the criterion's likelihood that of the observed cells.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

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
from vnce_engine.comparators.standardised import StandardisedTable
from vnce_engine.penalty import PenaltyKind
from vnce_engine.progress import FitCancelledError, Progress
from vnce_engine.result import FitStatus, PenaltyStep

FloatArray = NDArray[np.float64]

_NUM_STRENGTHS = 12
# The weakest penalty as a share of the strongest, which leaves no edge.
_WEAKEST = 0.01
_LEAST_STRONGEST = 1e-3
# Above the largest correlation by more than rounding, which would leave an edge of 1e-16.
_MARGIN = 1 + 1e-9
_NUM_FOLDS = 3
_MAX_ITERATIONS = 200
# Of the dual, in nats a row, at which a lasso has settled: far below the sampling error.
_DUAL_GAP = 1e-4
# Of the lasso of each column within it. A loose one leaves errors that no further pass takes away:
# gaps of strong penalties then stay open, on ordinary tables too.
_COLUMN_TOLERANCE = 1e-8
# Share of cross-validation's work that goes into the whole table's own path.
_OWN_SHARE = 0.25


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
    """The chosen K, and the path that it was chosen from; no path where it was given."""

    lasso: Lasso
    path: tuple[PenaltyStep, ...] = ()
    is_settled: bool = True
    """Whether some candidate had settled, so that the choice is among such."""


def graphical_lasso(covariance: Tensor, strength: float) -> Lasso:
    """Return K by the graphical lasso on the correlations of a covariance (d, d)."""
    scale = covariance.diagonal().sqrt()
    correlation = covariance / torch.outer(scale, scale)
    try:
        with warnings.catch_warnings():
            # What it warns of is read from its dual gap.
            warnings.simplefilter("ignore", ConvergenceWarning)
            _, precision, costs = sklearn_covariance.graphical_lasso(
                correlation.numpy(),
                alpha=strength,
                tol=_DUAL_GAP,
                enet_tol=_COLUMN_TOLERANCE,
                max_iter=_MAX_ITERATIONS,
                return_costs=True,
            )
    except FloatingPointError:  # of a covariance that is all but singular
        return Lasso(strength, torch.full_like(covariance, torch.nan), is_settled=False)
    inverse = 1 / scale
    symmetric = torch.from_numpy(_symmetric(precision)) * torch.outer(inverse, inverse)
    return Lasso(strength, symmetric, is_settled=bool(abs(costs[-1][1]) < _DUAL_GAP))


def choose_by_ebic(
    em: GaussianFit, table: StandardisedTable, gamma: float, progress: Progress
) -> LassoChoice:
    """Return the K of least extended Bayesian information criterion along the path.

    -2 log likelihood + E log n + 4 E gamma log d, with E edges and n rows.
    """
    num_rows, d = table.X.shape
    price = math.log(num_rows) + 4 * gamma * math.log(d)
    log_jacobian = table.log_jacobian().sum()
    lassos, criteria = [], []
    strengths = _strengths(em.covariance)
    for i, strength in enumerate(strengths):
        lasso = _kept(em.covariance, strength, progress)
        log_likelihood = log_jacobian + _log_likelihoods(table.X, em.mean, lasso).sum()
        lassos.append(lasso)
        criteria.append(float(-2 * log_likelihood + lasso.num_edges * price))
        progress.report((i + 1) / len(strengths), i + 1, None)
    is_candidate = [lasso.is_settled for lasso in lassos]
    best = _best([-criterion for criterion in criteria], is_candidate)
    return LassoChoice(
        lassos[best], _path(lassos, criteria, [None] * len(lassos), best), any(is_candidate)
    )


def choose_by_cross_validation(
    em: GaussianFit,
    table: StandardisedTable,
    rng: np.random.Generator,
    max_iterations: int,
    tolerance: float,
    progress: Progress,
) -> LassoChoice:
    """Return K at the penalty of best observed-data likelihood on held-out rows, of three folds."""
    strengths = _strengths(em.covariance)
    progress.enter_part(0.0, _OWN_SHARE)
    lassos = []
    for j, strength in enumerate(strengths):
        lassos.append(_kept(em.covariance, strength, progress))
        progress.report((j + 1) / len(strengths), 0, None)
    is_candidate = [lasso.is_settled for lasso in lassos]
    held_out = np.empty((len(strengths), len(table.X)))
    folds = np.array_split(rng.permutation(len(table.X)), _NUM_FOLDS)
    for i, fold in enumerate(folds):
        start, end = (_OWN_SHARE + (1 - _OWN_SHARE) * k / _NUM_FOLDS for k in (i, i + 1))
        middle = 0.5 * (start + end)
        part = _without(table, fold, max_iterations, tolerance, progress, (start, middle))
        progress.enter_part(middle, end)
        for j, strength in enumerate(strengths):
            judged = partial(_judged, table.X[fold], part, strength)
            is_settled, log_likelihoods = progress.journal.value(judged).tensor_split([1])
            held_out[j, fold] = log_likelihoods.numpy()
            is_candidate[j] &= bool(is_settled)
            progress.report((j + 1) / len(strengths), i + 1, None)
    held_out[[not lasso.is_finite for lasso in lassos]] = -np.inf  # nothing to choose
    scores = held_out.mean(axis=1)
    best = _best(scores.tolist(), is_candidate)
    with np.errstate(invalid="ignore"):  # where no fold has a K
        errors = (held_out[best] - held_out).std(axis=1, ddof=1) / math.sqrt(len(table.X))
    criteria = (scores + table.log_jacobian().mean()).tolist()
    return LassoChoice(
        lassos[best], _path(lassos, criteria, errors.tolist(), best), any(is_candidate)
    )


def _without(
    table: StandardisedTable,
    fold: NDArray[np.intp],
    max_iterations: int,
    tolerance: float,
    progress: Progress,
    span: tuple[float, float],
) -> GaussianFit:
    """Return EM's fit to all other rows."""
    training = StandardisedTable(np.delete(table.X, fold, axis=0), table.mean, table.scale)
    if np.isnan(training.X).all(axis=0).any():
        raise ValueError(
            "`penalty='cv'` needs every column observed in each two thirds of the rows"
        )
    part = fit_gaussian(
        training,
        max_iterations=max_iterations,
        tolerance=tolerance,
        progress=progress,
        span=span,
    )
    if part.status is FitStatus.CANCELLED:
        raise FitCancelledError
    return part


def _judged(X: FloatArray, part: GaussianFit, strength: float) -> Tensor:
    """Return whether a lasso of `part` has settled, and the log likelihoods (1 + n,) of rows X."""
    lasso = graphical_lasso(part.covariance, strength)
    is_settled = lasso.is_settled and part.status is FitStatus.CONVERGED
    log_likelihoods = _log_likelihoods(X, part.mean, lasso)
    return torch.from_numpy(np.concatenate([[float(is_settled)], log_likelihoods]))


def _kept(covariance: Tensor, strength: float, progress: Progress) -> Lasso:
    """Return the lasso, a value of the journal."""

    def compute() -> Tensor:
        lasso = graphical_lasso(covariance, strength)
        return torch.cat([covariance.new_tensor([lasso.is_settled]), lasso.precision.flatten()])

    is_settled, precision = progress.journal.value(compute).tensor_split([1])
    return Lasso(strength, precision.view_as(covariance), bool(is_settled))


def _log_likelihoods(X: FloatArray, mean: Tensor, lasso: Lasso) -> FloatArray:
    """Return the log likelihood (n,) of each row, -inf under a K that is none."""
    if not lasso.is_finite:
        return np.full(len(X), -np.inf)
    return observed_log_likelihoods(X, mean, lasso.precision)


def _best(scores: Sequence[float], is_candidate: Sequence[bool]) -> int:
    """Return where the highest score is, of candidates if there are any.

    Raises `FloatingPointError` if no score is a number.
    """
    if not np.isfinite(scores).any():
        raise FloatingPointError("no strength has a K")
    may_win = is_candidate if any(is_candidate) else [True] * len(scores)
    return int(np.argmax(np.where(may_win, scores, -np.inf)))


def _path(
    lassos: Sequence[Lasso],
    criteria: Sequence[float],
    errors: Sequence[float | None],
    best: int,
) -> tuple[PenaltyStep, ...]:
    return tuple(
        PenaltyStep(PenaltyKind.L1, lasso.strength, criterion, error, lasso.num_edges, i == best)
        for i, (lasso, criterion, error) in enumerate(zip(lassos, criteria, errors, strict=True))
    )


def _strengths(covariance: Tensor) -> list[float]:
    """Return penalties from the least that leaves no edge down, evenly on a log scale."""
    root = covariance.diagonal().rsqrt()
    correlation = covariance * torch.outer(root, root)
    strongest = float((correlation - torch.diag(correlation.diagonal())).abs().max())
    # Columns may be uncorrelated to the bit.
    strongest = _MARGIN * max(strongest, _LEAST_STRONGEST)
    return [float(s) for s in np.geomspace(strongest, _WEAKEST * strongest, _NUM_STRENGTHS)]


def _symmetric(matrix: FloatArray) -> FloatArray:
    """Return its symmetric part; an entry is zero if either of the two is, by rounding."""
    zero = (matrix == 0) | (matrix.T == 0)
    return np.where(zero, 0.0, 0.5 * (matrix + matrix.T))

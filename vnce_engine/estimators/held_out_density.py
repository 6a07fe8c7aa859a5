"""How well an estimator describes rows that it has not seen: their log density, fold by fold.

All that a fit chooses is chosen anew without each fold.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from torch import Tensor

from vnce_engine.data.clusters import Codes, deal
from vnce_engine.data.table_transform import least_positive
from vnce_engine.data.tables import take_rows
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.estimators.refits import refusal_of_fit
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.progress import OnStep, within
from vnce_engine.runtime.reports import FitStatus

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class HeldOutDensity:
    """The log density of each row that has something observed, by a fit that has not seen it."""

    log_densities: FloatArray
    """(n,) of the observed cells, in nats, in the table's units; all NaN where there are none."""
    monte_carlo_error: float
    """Standard error of their mean over draws of missing cells and of the constant, at most."""
    num_unconverged: int
    """Folds whose fit ran out of iterations."""
    reason: str | None
    """Why there are none."""
    clusters: Codes | None = None
    """(n,): the cluster of each row; None where rows are independent."""


def held_out_density(
    estimator: NetworkEstimator,
    X: ArrayLike,
    table: FloatArray,
    n_folds: int,
    seed: int,
    on_step: OnStep | None = None,
    checkpoint: Checkpoint | None = None,
    clusters: Codes | None = None,
) -> HeldOutDensity:
    """Return how well an unfitted estimator describes rows of X, read as a `table` (n, d).

    The `seed` deals rows to folds, the same for every estimator, and those of one of the `clusters`
    (n,), where there are any, to the same fold. A cell of 0, where some transforms
    are infinitely steep, counts as the values up to half of the least positive one of its column.
    It comes after a fit to all of X, the first of `n_folds` + 1 for `on_step`, whose checkpoint it
    goes on with. Raises `FitCancelledError` if `on_step` returns True.
    """
    known = np.flatnonzero(~np.isnan(table).all(axis=1))
    own = None if clusters is None else np.unique(clusters[known], return_inverse=True)[1]
    number, what = (len(known), "rows") if own is None else (int(own.max()) + 1, "clusters")
    if n_folds > number:
        reason = f"{number} {what} with something observed are too few for {n_folds} folds"
        return HeldOutDensity(np.full(len(known), np.nan), np.nan, 0, reason, own)
    least = least_positive(table[known])
    dealt = deal(len(known), own, n_folds, np.random.default_rng(seed))
    folds = [known[fold] for fold in dealt]
    checkpoint = checkpoint or Checkpoint()
    log_densities, errors = np.full(len(table), np.nan), np.zeros(len(table))
    num_unconverged = 0

    def judged(position: int, fold: NDArray[np.intp]) -> tuple[Tensor, bool] | str:
        fitted: NetworkEstimator = clone(estimator)
        rows = np.setdiff1d(known, fold)
        others, labels = take_rows(X, rows), None if clusters is None else clusters[rows]
        report = within(on_step, position + 1, n_folds + 1, _stage(position, n_folds))
        refusal = refusal_of_fit(fitted, others, report, checkpoint, labels)
        if refusal is not None:
            return f"the fit is refused: {refusal}"
        if fitted.status_ is FitStatus.NON_FINITE:
            return "the objective is not finite"
        if not fitted.diagnostics_.is_positive_definite:
            return "K is not positive definite, so that it may have no density"
        found = np.stack(fitted.log_densities(table[fold], least))
        if not np.isfinite(found).all():
            return "a row that was held out has no finite log density"
        return torch.from_numpy(found), fitted.converged_

    for position, fold in enumerate(folds):
        outcome = checkpoint.once(partial(judged, position, fold))
        if isinstance(outcome, str):
            nothing = np.full(len(known), np.nan)
            reason = f"Without {_stage(position, n_folds)} {outcome}"
            return HeldOutDensity(nothing, np.nan, num_unconverged, reason, own)
        (log_densities[fold], errors[fold]), has_converged = outcome[0].numpy(), outcome[1]
        num_unconverged += not has_converged
    return HeldOutDensity(
        log_densities[known], float(errors[known].mean()), num_unconverged, None, own
    )


def _stage(position: int, n_folds: int) -> str:
    return f"fold {position + 1} of {n_folds}"

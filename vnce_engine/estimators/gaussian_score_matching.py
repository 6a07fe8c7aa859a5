"""Gaussian network by marginal score matching."""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.comparators.exponential import Parameters
from vnce_engine.comparators.gaussian_em import fit_gaussian
from vnce_engine.comparators.marginal_score import (
    MarginalScoreFit,
    fit_marginal_score,
    row_scores,
)
from vnce_engine.comparators.result import (
    ComparatorFit,
    Shrinkage,
    present,
)
from vnce_engine.comparators.standardised import NUM_FOLDS, StandardisedTable
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.estimators.gaussian_em import GaussianComparator
from vnce_engine.inference.diagnostics import grid_end_warnings, missing_completely_at_random
from vnce_engine.inference.result import FitResult, PenaltyStep
from vnce_engine.penalties.boundedness import Growth, refuse_few_rows
from vnce_engine.penalties.penalty import Penalty, PenaltyKind
from vnce_engine.runtime.checks import check_number
from vnce_engine.runtime.progress import FitCancelledError, Progress
from vnce_engine.runtime.reports import MESSAGES, FitStatus
from vnce_engine.selection.choice import Selection
from vnce_engine.selection.held_out_gains import has_fallen, mean_and_error

FloatArray = NDArray[np.float64]

_MAX_ITERATIONS = 1_000
# Ridges to choose from, from one that leaves hardly any interaction to the weakest that is safe.
_STRENGTHS = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
# Falls in a row of the held-out score after which the path ends.
_FALLS = 2
# Largest entry of the gradient up to which fits are followed that are only compared.
_ROUGH = 1e-3
# The strongest ridge within so many standard errors of the best is chosen.
_STANDARD_ERRORS = 1.0
# Iterations of EM that the search starts from; they are the answer where nothing is missing.
_EM_ITERATIONS = 10
# Share of the whole at which a penalty has been chosen.
_CHOICE_SHARE = 0.8
_MESSAGES = {
    **MESSAGES,
    FitStatus.CONVERGED: "No entry of the gradient exceeds `tol`.",
    FitStatus.MAX_ITERATIONS: "The search stopped at `max_iter` iterations, or where rounding let "
    "it go no further, before the gradient fell to `tol`. Where many cells are missing the "
    "objective is nearly flat: try `penalty='cv'` or a larger `penalty`, `max_iter` or `tol`.",
}


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianScoreMatching(GaussianComparator):
    """Gaussian network from a table with missing cells, by marginal score matching.

    A row is judged by the score of the marginal density of its observed cells (Givens, Liu and
    Reeve, 2025), which of a Gaussian is known; columns are scaled to variance 1. Without missing
    cells K is the inverse covariance (Hyvarinen, 2005). K stays positive definite.

    Parameters
    ----------
    column_transform : str or sequence of str
        As it is for `TruncatedGaussianVNCE`, "rank-normal" to quantiles of a whole normal. All but
        it and "none" need non-negative values.
    penalty : None, "cv" or float
        Strength of a ridge on interactions, as it is for 1000 rows; None is the objective itself,
        and "cv" takes the strongest whose objective on held-out rows is within a standard error of
        the best.
    max_iter : int or None
        Iterations of L-BFGS at most, 1000 if None.
    tol : float
        Largest entry of the gradient, by Cholesky factors of K relative to those of a start and by
        the mean, columns standardised, at which the search has converged.
    random_state : int, Generator, RandomState or None
        Seed that deals rows to the folds of "cv"; None draws a new one.
    min_observed : int or None
        As it is for `TruncatedGaussianVNCE`.
    edge_threshold : float
        |partial correlation| from which a pair is shown as an edge.

    Attributes
    ----------
    mean_ : ndarray (d,)
        The mean; `precision_` is the inverse of the covariance.

    The others are those of `TruncatedGaussianVNCE`: `linear_` is K mu, `log_partition_` the log of
    the Gaussian integral, and `objective_path_` minus the objective, columns standardised. With
    "cv" `penalty_path_` has the strengths that were tried, and `selection_` is "held-out".
    """

    penalty: float | Literal["cv"] | None = None
    tol: float = 1e-5

    def _check_parameters(self) -> None:
        is_rule = isinstance(self.penalty, str) and self.penalty == "cv"
        if self.penalty is not None and not is_rule:
            check_number("penalty", self.penalty, "None, 'cv' or a positive number", 0, math.inf)
        check_number("tol", self.tol, "a positive number", 0, math.inf)

    def _estimate(self, observations: Observations, seed: int, progress: Progress) -> FitResult:
        table = StandardisedTable.of(observations)
        num_rows, d = table.X.shape
        given = self.penalty if isinstance(self.penalty, int | float) else None
        weakest = _STRENGTHS[-1] if self.penalty == "cv" else float(given or 0.0)
        penalty = Penalty(weakest, PenaltyKind.RIDGE, torch.ones(d, dtype=torch.float64), num_rows)
        refuse_few_rows(given, penalty, Growth.LINEAR, has_mean=True)
        progress.checkpoint.begin_fit(observations.name_of_fit(self._choices(), seed))
        path: tuple[PenaltyStep, ...] = ()
        try:
            if self.penalty == "cv":
                progress.enter("penalty", 0.0, _CHOICE_SHARE)
                path = self._choose(table, penalty, np.random.default_rng(seed), progress)
                (chosen,) = (step.strength for step in path if step.chosen)
                penalty = replace(penalty, strength=chosen)
                progress.enter("fit", _CHOICE_SHARE, 1.0)
            fit = self._fit_rows(table, penalty, _start(table), self.tol, progress)
        except FitCancelledError:
            identity = torch.eye(d, dtype=torch.float64)
            fit = MarginalScoreFit(
                identity.new_zeros(d), identity, (), math.nan, FitStatus.CANCELLED
            )
        self.mean_ = table.mean_in_units(fit.mean).numpy()
        num_missing = int((~observations.observed).sum())
        shrinkage = Shrinkage.of(penalty)
        if path:
            shrinkage = replace(shrinkage, path=path, selection=str(Selection.HELD_OUT))
        return present(
            _comparator_fit(fit),
            observations,
            table.normal_in_units(fit.mean, fit.precision),
            # In units in which an interaction is a partial correlation.
            1 / fit.precision.diagonal(),
            has_linear=True,
            message=_MESSAGES[fit.status],
            shrinkage=shrinkage,
            warnings=(
                *((missing_completely_at_random(),) if num_missing else ()),
                *grid_end_warnings(path),
            ),
        )

    def _fit_rows(
        self,
        table: StandardisedTable,
        penalty: Penalty,
        start: tuple[Tensor, Tensor],
        tolerance: float,
        progress: Progress,
    ) -> MarginalScoreFit:
        return fit_marginal_score(
            table.X,
            penalty,
            start=start,
            max_iterations=_MAX_ITERATIONS if self.max_iter is None else self.max_iter,
            tolerance=tolerance,
            progress=progress,
        )

    def _choose(
        self,
        table: StandardisedTable,
        penalty: Penalty,
        rng: np.random.Generator,
        progress: Progress,
    ) -> tuple[PenaltyStep, ...]:
        """Return strengths from strong to weak, one of them chosen by held-out rows."""
        folds = table.folds(rng)
        parts = [table.without(fold) for fold in folds]
        starts = [_start(part) for part in parts]
        tolerance = max(self.tol, _ROUGH)
        held_out: list[FloatArray] = []
        for j, strength in enumerate(_STRENGTHS):
            scores = np.empty(len(table.X))
            for i, (fold, part) in enumerate(zip(folds, parts, strict=True)):
                done = (j * NUM_FOLDS + i) / (len(_STRENGTHS) * NUM_FOLDS)
                progress.enter_part(done, done + 1 / (len(_STRENGTHS) * NUM_FOLDS))
                own = replace(penalty, strength=strength, num_rows=len(part.X))
                fit = self._fit_rows(part, own, starts[i], tolerance, progress)
                if fit.status is FitStatus.CANCELLED:
                    raise FitCancelledError
                starts[i] = (fit.mean, fit.precision)
                scores[fold] = row_scores(table.X[fold], fit.mean, fit.precision)
            held_out.append(scores)
            if has_fallen([float(values.mean()) for values in held_out], _FALLS):
                break
        return _path(held_out, table)


def _start(table: StandardisedTable) -> tuple[Tensor, Tensor]:
    """Return a mean and a precision near those of the rows."""
    em = fit_gaussian(table, max_iterations=_EM_ITERATIONS, tolerance=1e-6, progress=Progress(None))
    return em.mean, em.spread.precision


def _path(held_out: list[FloatArray], table: StandardisedTable) -> tuple[PenaltyStep, ...]:
    """Return the strengths with the mean scores of held-out rows (n,), and the chosen one."""
    num_columns = table.X.shape[1]
    means = [float(values.mean()) for values in held_out]
    best = held_out[int(np.argmax(means))]
    errors = [mean_and_error(torch.from_numpy(best - v), table.clusters)[1] for v in held_out]
    good_enough = [
        max(means) - mean <= _STANDARD_ERRORS * error
        for mean, error in zip(means, errors, strict=True)
    ]
    chosen = good_enough.index(True)
    num_pairs = num_columns * (num_columns - 1) // 2
    return tuple(
        PenaltyStep(PenaltyKind.RIDGE, _STRENGTHS[j], mean, error, num_pairs, chosen=j == chosen)
        for j, (mean, error) in enumerate(zip(means, errors, strict=True))
    )


def _comparator_fit(fit: MarginalScoreFit) -> ComparatorFit:
    return ComparatorFit(
        theta=Parameters.of(QuadraticModel.normal(fit.mean, fit.precision)),
        status=fit.status,
        objective_path=fit.objective_path,
        gradient_norm=fit.gradient_norm,
    )

"""Gaussian network by EM, and the graphical lasso on its covariance."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.comparators.exponential import Parameters
from vnce_engine.comparators.gaussian_em import GaussianFit, fit_gaussian
from vnce_engine.comparators.graphical_lasso import (
    LassoChoice,
    LassoPath,
    TwoStagePath,
    choose_by_cross_validation,
    choose_by_ebic,
)
from vnce_engine.comparators.penalised_em import PenalisedPath
from vnce_engine.comparators.result import ComparatorFit, Shrinkage, present
from vnce_engine.comparators.standardised import StandardisedTable
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.estimators.gaussian_density import GaussianDensity
from vnce_engine.inference.diagnostics import choice_warnings, grid_end_warnings
from vnce_engine.inference.result import FitResult
from vnce_engine.penalties.boundedness import few_rows, unbounded
from vnce_engine.penalties.penalty import PenaltyKind
from vnce_engine.runtime.checks import check_number, check_range
from vnce_engine.runtime.progress import FitCancelledError, Progress
from vnce_engine.runtime.reports import MESSAGES, FitStatus, FitWarning
from vnce_engine.selection.choice import Selection

FloatArray = NDArray[np.float64]

_MAX_ITERATIONS = 500
_MESSAGES = {
    **MESSAGES,
    FitStatus.CONVERGED: "An EM iteration gained less than `tol` nats per row.",
    FitStatus.MAX_ITERATIONS: "EM stopped at `max_iter` iterations before the likelihood "
    "converged: see `column_change_` for how far each column's imputed cells still moved.",
    FitStatus.NON_FINITE: "The likelihood became infinite or undefined.",
}
_STUCK = (
    "The graphical lasso's dual gap had not closed when it was stopped. Columns that are nearly "
    "functions of others may be behind it."
)
# How rules of choosing are called in every estimator's result.
_SELECTIONS = {"ebic": str(Selection.EBIC), "cv": str(Selection.HELD_OUT)}
# EM's statuses after which its covariance is a basis for a lasso.
_USABLE = (FitStatus.CONVERGED, FitStatus.MAX_ITERATIONS)
# Share of the whole at which EM ends where a penalty is chosen after it.
_EM_SHARE = 0.5


@dataclass(frozen=True)
class _Fit:
    em: GaussianFit
    status: FitStatus
    choice: LassoChoice | None


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianComparator(GaussianDensity):
    """A Gaussian network with a mean, `mean_`."""

    def _mean(self) -> Tensor:
        return torch.from_numpy(self.mean_)


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianEM(GaussianComparator):
    """Gaussian network from an incomplete table, by maximum likelihood (EM), sparse on request.

    The model of a row, on all of ℝ^d, is N(mu, K⁻¹); missing cells have their exact conditional
    distribution. With a `penalty`, the graphical lasso of the EM covariance, columns scaled to
    variance 1. With no more rows than columns, where that covariance is singular, the lasso is EM's
    own M-step (Staedler and Buehlmann, 2012), and there has to be a `penalty`.

    Parameters
    ----------
    column_transform : str or sequence of str
        As it is for `TruncatedGaussianVNCE`, "rank-normal" to quantiles of a whole normal. All but
        it and "none" need non-negative values.
    penalty : None, "ebic", "cv" or float
        None is maximum likelihood; a number the L1 penalty of the graphical lasso, on correlations;
        "ebic" takes the graph of least extended Bayesian information criterion, and "cv" the
        penalty of best likelihood on held-out rows.
    ebic_gamma : float
        Weight, from 0 to 1, of the number of possible graphs in "ebic"; 0 is the BIC.
    max_iter : int or None
        EM iterations at most, 500 if None.
    tol : float
        Gain of an iteration, in nats per row, at which EM has converged.
    random_state : int, Generator, RandomState or None
        Seed that deals rows to the folds of "cv"; None draws a new one.
    min_observed : int or None
        As it is for `TruncatedGaussianVNCE`.
    edge_threshold : float
        |partial correlation| from which a pair is shown as an edge.

    Attributes
    ----------
    mean_, covariance_ : ndarray (d,), (d, d)
        Maximum-likelihood estimates; `precision_` is the inverse of the covariance without a
        penalty, and with no more rows than columns.
    column_change_ : ndarray (d,)
        How far the mean of each column's imputed cells moved in the last iteration, in units of the
        column's standard deviation.

    The others are those of `TruncatedGaussianVNCE`: `linear_` is K mu, `log_partition_` the log of
    the Gaussian integral, and `objective_path_` the log likelihood of the observed cells, nats a
    row, in the units of the (transformed) columns, less the penalty where the lasso is the M-step.
    With "ebic" and "cv" `penalty_path_` has all strengths with their criterion: the eBIC, or the
    log likelihood of held-out rows, nats per row. `selection_` calls them "ebic" and "held-out".
    """

    penalty: float | Literal["ebic", "cv"] | None = None
    ebic_gamma: float = 0.5
    tol: float = 1e-7

    def _check_parameters(self) -> None:
        is_rule = isinstance(self.penalty, str) and self.penalty in _SELECTIONS
        if self.penalty is not None and not is_rule:
            rule = "None, 'ebic', 'cv' or a positive number"
            check_number("penalty", self.penalty, rule, 0, math.inf)
        check_range("ebic_gamma", self.ebic_gamma, 0, 1)
        check_number("tol", self.tol, "a positive number", 0, math.inf)

    def _estimate(self, observations: Observations, seed: int, progress: Progress) -> FitResult:
        table = StandardisedTable.of(observations)
        is_wide = self._refuse_few_rows(table)
        progress.checkpoint.begin_fit(observations.name_of_fit(self._choices(), seed))
        rng = np.random.default_rng(seed)
        fit = (
            self._penalised(table, rng, progress)
            if is_wide
            else self._fit_table(table, rng, progress)
        )
        em, status, choice = fit.em, fit.status, fit.choice
        precision = em.spread.precision if choice is None else choice.fit.lasso.precision
        self.mean_ = table.mean_in_units(em.mean).numpy()
        self.covariance_ = table.covariance_in_units(em.spread.covariance).numpy()
        is_stuck = choice is not None and not choice.fit.lasso.is_settled
        if is_stuck and status is FitStatus.CONVERGED:
            status = FitStatus.MAX_ITERATIONS
        num_missing = int((~observations.observed).sum())
        return present(
            _comparator_fit(em, status, precision),
            observations,
            table.normal_in_units(em.mean, precision),
            # In units in which an interaction is a partial correlation.
            1 / precision.diagonal(),
            has_linear=True,
            message=_STUCK if is_stuck else _MESSAGES[status],
            shrinkage=self._shrinkage(choice),
            warnings=(
                *((_missing_at_random(num_missing),) if num_missing else ()),
                *_choice_warnings(choice),
            ),
        )

    def _refuse_few_rows(self, table: StandardisedTable) -> bool:
        """Return whether rows are too few for no penalty; raise `ValueError` if there is none."""
        num_rows, d = table.X.shape
        found = few_rows(num_rows, d, has_mean=True)
        if found is not None and self.penalty is None:
            raise unbounded("penalty", f"'ebic', 'cv' or a positive number {found}", None)
        return found is not None

    def _fit_table(
        self, table: StandardisedTable, rng: np.random.Generator, progress: Progress
    ) -> _Fit:
        """Return EM's fit, and a lasso of its covariance where there is to be one."""
        em = fit_gaussian(
            table,
            max_iterations=self._max_iterations(),
            tolerance=self.tol,
            progress=progress,
            span=(0.0, 1.0 if self.penalty is None else _EM_SHARE),
        )
        is_incomplete = bool(np.isnan(table.X).any())
        if self.penalty is not None and is_incomplete and em.status is FitStatus.NON_FINITE:
            # Missing cells can make the covariance singular also where there are rows enough.
            return self._penalised(table, rng, progress, _EM_SHARE)
        if self.penalty is None or em.status not in _USABLE:
            return _Fit(em, em.status, None)
        try:
            progress.enter("penalty", _EM_SHARE, 1.0)
            path = TwoStagePath(em, self._max_iterations(), self.tol)
            choice = self._choose(path, table, rng, progress)
        except FitCancelledError:
            return _Fit(em, FitStatus.CANCELLED, None)
        except FloatingPointError:
            return _Fit(em, FitStatus.NON_FINITE, None)
        return _Fit(em, em.status, choice)

    def _penalised(
        self,
        table: StandardisedTable,
        rng: np.random.Generator,
        progress: Progress,
        share_done: float = 0.0,
    ) -> _Fit:
        """Return the fit of EM with a lasso for its M-step."""
        path = PenalisedPath(table, self._max_iterations(), self.tol)
        status = FitStatus.NON_FINITE
        try:
            progress.enter("penalty", share_done, 1.0)
            choice = self._choose(path, table, rng, progress)
            return _Fit(choice.fit.em, choice.fit.em.status, choice)
        except FitCancelledError:
            status = FitStatus.CANCELLED
        except FloatingPointError:
            pass
        return _Fit(path.start, status, None)

    def _max_iterations(self) -> int:
        return _MAX_ITERATIONS if self.max_iter is None else self.max_iter

    def _choose(
        self,
        path: LassoPath,
        table: StandardisedTable,
        rng: np.random.Generator,
        progress: Progress,
    ) -> LassoChoice:
        """Return the lasso that was asked for; raise `FloatingPointError` if it has no K."""
        match self.penalty:
            case "ebic":
                return choose_by_ebic(path, table, self.ebic_gamma, progress)
            case "cv":
                return choose_by_cross_validation(path, table, rng, progress)
            case strength:
                fit = path.at(float(strength or 0.0), progress)
                if not fit.lasso.is_finite:
                    raise FloatingPointError
                return LassoChoice(fit)

    def _shrinkage(self, choice: LassoChoice | None) -> Shrinkage:
        if choice is None:
            return Shrinkage()
        selection = _SELECTIONS.get(str(self.penalty))
        return Shrinkage(choice.fit.lasso.strength, PenaltyKind.L1, choice.path, selection)


def _choice_warnings(choice: LassoChoice | None) -> list[FitWarning]:
    if choice is None:
        return []
    unsettled = () if choice.is_settled else ("penalty",)
    return [
        *grid_end_warnings(choice.path),
        *choice_warnings(unsettled),
    ]


def _comparator_fit(em: GaussianFit, status: FitStatus, precision: Tensor) -> ComparatorFit:
    return ComparatorFit(
        theta=Parameters.of(QuadraticModel.normal(em.mean, precision)),
        status=status,
        objective_path=em.log_likelihood_path,
        objective_name="log likelihood per row",
        gradient_norm=math.nan,
        message=em.message,
        column_change=em.column_change,
    )


def _missing_at_random(num_missing: int) -> FitWarning:
    return FitWarning(
        "missing-at-random",
        f"Missing cells: {num_missing}. The estimates are valid if cells are missing at random: "
        "whether one is may depend on observed cells of its row, but not on missing ones.",
    )

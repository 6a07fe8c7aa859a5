"""Estimators that know complete tables only: pseudo-likelihood and score matching."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.comparators.completion import filled, fit_completed
from vnce_engine.comparators.exponential import Parameters
from vnce_engine.comparators.filling import Imputation, complete_rows, not_modelled
from vnce_engine.comparators.linear_choice import JudgedSample
from vnce_engine.comparators.maximise import CompleteSample, Optimum, Report, maximise
from vnce_engine.comparators.pseudo_likelihood import PseudoLikelihood
from vnce_engine.comparators.result import ComparatorFit, ScaledTable
from vnce_engine.comparators.score_matching import JudgedScoreMatching, ScoreMatching, Weight
from vnce_engine.data.observations import Observations
from vnce_engine.estimators.comparator import ComparatorEstimator
from vnce_engine.penalties.boundedness import Growth
from vnce_engine.penalties.penalty import PenaltyKind, PenaltyName
from vnce_engine.runtime.checks import check_choice, check_number
from vnce_engine.runtime.progress import Progress
from vnce_engine.runtime.reports import MESSAGES, FitStatus, FitWarning

FloatArray = NDArray[np.float64]

_MAX_ROUNDS = 100
_IMPUTATIONS = ("gibbs", Imputation.MEAN, Imputation.ZERO, Imputation.DROP)
_MESSAGES = {
    **MESSAGES,
    FitStatus.CONVERGED: "The optimum was found, and imputed cells converged where there are any.",
    FitStatus.MAX_ITERATIONS: "The fit stopped before the estimates converged, or at `max_iter` "
    "rounds: see `column_change_` for how far each column's imputed cells still moved. Columns "
    "that are nearly functions of others may be behind it.",
}


@dataclass(kw_only=True, eq=False, repr=False)
class _CompletedEstimator(ComparatorEstimator):
    imputation: Literal["gibbs", "mean", "zero", "drop"] = "gibbs"
    penalty_kind: PenaltyName = "adaptive"
    tol: float = 3e-3

    @abstractmethod
    def _sample(self, rows: Tensor, centre: Tensor, progress: Progress) -> CompleteSample:
        """Return complete rows (d, n) under the objective, for A of rows from `centre` (d,)."""

    def _penalty_kinds(self) -> tuple[str, ...]:
        return tuple(PenaltyKind)

    def _fixed_imputation(self) -> Imputation | None:
        """Return what is put in place of missing cells; None where they are drawn."""
        return None if self.imputation == "gibbs" else Imputation(self.imputation)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("imputation", self.imputation, _IMPUTATIONS)
        check_number("tol", self.tol, "a number between 0 and 1", 0, 1)

    def _estimate_scaled(self, table: ScaledTable, progress: Progress) -> ComparatorFit:
        def fit(rows: FloatArray, start: Parameters, report: Report | None) -> Optimum:
            cells = torch.from_numpy(rows)
            centre = cells.mean(dim=1)
            # Without h there is nothing that could move along.
            sample = self._sample(cells, centre * table.has_linear, progress)
            return maximise(sample, start, table, progress, report)

        return fit_completed(
            table,
            self._fixed_imputation(),
            fit,
            max_rounds=_MAX_ROUNDS if self.max_iter is None else self.max_iter,
            tolerance=self.tol,
            progress=progress,
        )

    def _filled(self, X: FloatArray) -> FloatArray:
        imputation = self._fixed_imputation()
        return X if imputation in (None, Imputation.DROP) else filled(X, imputation)

    def _fitted_rows(self, observations: Observations) -> Observations:
        # A strength counts for so many rows as there are, and k0 is theirs.
        if self._fixed_imputation() is Imputation.DROP:
            return complete_rows(observations)
        return observations

    def _message(self, status: FitStatus) -> str:
        return _MESSAGES[status]

    def _missing_warning(self, num_missing: int) -> FitWarning:
        if self._fixed_imputation() is None:
            return super()._missing_warning(num_missing)
        return not_modelled(self.imputation, num_missing)


@dataclass(kw_only=True, eq=False, repr=False)
class TruncatedGaussianPseudoLikelihood(_CompletedEstimator):
    """Truncated Gaussian network by maximum pseudo-likelihood (Besag, 1975).

    Maximises the sum of each column's log density given all others, a univariate truncated normal,
    over one symmetric K for all. c does not enter: `log_partition_` is None.

    Parameters
    ----------
    imputation : "gibbs", "mean", "zero" or "drop"
        Missing cells: draws under the present estimate, in alternation with fits (stochastic EM);
        the column's mean; zero; or their rows left out.
    linear : "auto", "zero" or "free"
        Whether the linear term h is estimated. "auto": free where a column's mean lies further from
        zero than any model without h has it, about √(2d) standard deviations; else both models are
        fitted to half of the rows, and h is free if the objective of the others gains
        more than two standard errors by it. `linear_choice_` says which.
    penalty_kind : "adaptive", "ridge", "centred-ridge" or "l1"
        As of `TruncatedGaussianVNCE`; "l1" gives exact zeros.
    max_iter : int or None
        Rounds of imputation at most, 100 if None.
    tol : float
        Change in a round of a column's mean imputed value, averaged over rounds, in units of the
        column's root mean square, at which imputation has settled.

    All other parameters are those of `TruncatedGaussianMLE`. The attributes are those of
    `TruncatedGaussianVNCE`, and `column_change_` (d,): see `tol`.
    """

    def _sample(self, rows: Tensor, centre: Tensor, progress: Progress) -> CompleteSample:
        return PseudoLikelihood.of(rows, centre)


@dataclass(kw_only=True, eq=False, repr=False)
class TruncatedGaussianScoreMatching(_CompletedEstimator):
    """Truncated Gaussian network by generalised score matching (Yu, Drton and Shojaie, 2019).

    Quadratic in K and h, hence fast; c does not enter: `log_partition_` is None.

    Parameters
    ----------
    weight : "capped" or "square"
        The weight of a cell x, its column scaled to mean square 1: min(x, 1), or the original x².

    All other parameters and the attributes are those of `TruncatedGaussianPseudoLikelihood`.
    """

    _growth = Growth.LINEAR

    weight: Literal["capped", "square"] = "capped"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("weight", self.weight, tuple(Weight))

    def _sample(self, rows: Tensor, centre: Tensor, progress: Progress) -> CompleteSample:
        return ScoreMatching.of(rows, centre, Weight(self.weight), progress)

    def _judged(self, rows: Tensor) -> JudgedSample:
        return JudgedScoreMatching.read(rows, Weight(self.weight), Progress(None))

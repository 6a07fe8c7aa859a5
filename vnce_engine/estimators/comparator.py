"""What the comparators of the truncated Gaussian share: their parameters and their warnings."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.comparators.exponential import Parameters
from vnce_engine.comparators.linear_choice import (
    JudgedSample,
    Trial,
    choose_linear,
    is_too_far,
    largest_distance,
)
from vnce_engine.comparators.pseudo_likelihood import PseudoLikelihood
from vnce_engine.comparators.result import (
    ComparatorFit,
    ScaledTable,
    Shrinkage,
    present,
)
from vnce_engine.contrastive.truncated_problem import inverse_k0, scaled_columns
from vnce_engine.data.observations import Observations
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.inference.diagnostics import missing_completely_at_random
from vnce_engine.inference.result import FitResult, LinearEvidence
from vnce_engine.penalties.boundedness import Growth, least_rows, refuse_few_rows
from vnce_engine.penalties.penalty import Penalty, PenaltyKind
from vnce_engine.runtime.checks import check_choice, check_number, listed
from vnce_engine.runtime.progress import FitCancelledError, Progress
from vnce_engine.runtime.reports import FitStatus, FitWarning

FloatArray = NDArray[np.float64]

# Between it and 0 there is no number.
_SMALLEST = math.ulp(0.0)
# Share of the whole at which it is decided whether h is estimated.
_LINEAR_SHARE = 0.2


@dataclass(kw_only=True, eq=False, repr=False)
class ComparatorEstimator(NetworkEstimator):
    """A truncated Gaussian network, estimated by other means than telling data from noise."""

    # Of the objective, where rows are too few to bound it.
    _growth = Growth.LOGARITHMIC

    linear: Literal["auto", "zero", "free"] = "auto"
    penalty: float | None = None
    penalty_kind: str

    @abstractmethod
    def _estimate_scaled(self, table: ScaledTable, progress: Progress) -> ComparatorFit:
        """Fit to columns at mean square 1."""

    @abstractmethod
    def _message(self, status: FitStatus) -> str:
        """Return in words how a fit ended that has no words of its own."""

    def _fitted_rows(self, observations: Observations) -> Observations:
        """Return the rows that the estimates are of."""
        return observations

    def _missing_warning(self, num_missing: int) -> FitWarning:
        """Return what a reader must know about missing cells."""
        return missing_completely_at_random()

    def _check_parameters(self) -> None:
        check_choice("linear", self.linear, ("auto", "free", "zero"))
        check_choice("penalty_kind", self.penalty_kind, self._penalty_kinds())
        if self.penalty is not None:
            rule = "None or a number of at least 0"
            check_number("penalty", self.penalty, rule, -_SMALLEST, math.inf)

    def _penalty_kinds(self) -> tuple[str, ...]:
        return (PenaltyKind.ADAPTIVE, PenaltyKind.RIDGE)

    def _estimate(self, observations: Observations, seed: int, progress: Progress) -> FitResult:
        progress.checkpoint.begin_fit(observations.name_of_fit(self._choices(), seed))
        scaled, scale = scaled_columns(self._fitted_rows(observations))
        X, rng = scaled.to_array(), np.random.default_rng(seed)
        fit: ComparatorFit | None = None
        has_linear = self.linear == "free"
        evidence: LinearEvidence | None = None
        if self.linear == "auto":
            try:
                # Of a stream of its own, so that a fit has the draws of one that was told.
                has_linear, evidence = self._choose_linear(scaled, X, rng.spawn(1)[0], progress)
            except FitCancelledError:
                fit = _cancelled(X)
        penalty = self._penalty(scaled, has_linear)
        refuse_few_rows(self.penalty, penalty, self._growth, has_mean=has_linear)
        table = ScaledTable(X, has_linear, penalty, rng)
        fit = fit or self._estimate_scaled(table, progress)
        num_missing = int((~observations.observed).sum())
        return present(
            fit,
            observations,
            fit.theta.model(math.nan).with_columns_scaled(scale),
            penalty.inverse_k0,
            has_linear=has_linear,
            message=self._message(fit.status),
            shrinkage=Shrinkage.of(penalty),
            warnings=(
                *((self._missing_warning(num_missing),) if num_missing else ()),
                *([] if has_linear else self._linear_warnings(X)),
            ),
            linear_evidence=evidence,
        )

    def _penalty(self, scaled: Observations, has_linear: bool) -> Penalty:
        return Penalty(
            float(self.penalty or 0.0),
            PenaltyKind(self.penalty_kind),
            inverse_k0(scaled, has_linear=has_linear),
            scaled.num_rows,
        )

    def _choose_linear(
        self, scaled: Observations, X: FloatArray, rng: np.random.Generator, progress: Progress
    ) -> tuple[bool, LinearEvidence | None]:
        """Decide whether h is estimated; it is not where rows would not suffice for it."""
        if not self.penalty and len(X) < least_rows(X.shape[1], has_mean=True):
            return False, None
        progress.enter("linear term", 0.0, _LINEAR_SHARE)
        trial = Trial(
            X, self._filled(X), self._judged, partial(self._penalty, scaled), scaled.shared_clusters
        )
        chosen = choose_linear(trial, rng, progress)
        progress.enter("fit", _LINEAR_SHARE, 1.0)
        return chosen

    def _filled(self, X: FloatArray) -> FloatArray:
        """Return the table with what a fit fills in beforehand."""
        return X

    def _judged(self, rows: Tensor) -> JudgedSample:
        """Return complete rows (d, n) under the objective by which h is judged."""
        return PseudoLikelihood.of(rows, rows.new_zeros(len(rows)))

    def _linear_warnings(self, X: FloatArray) -> list[FitWarning]:
        """Warn of columns that no model without h describes."""
        if not (too_far := is_too_far(X)).any():
            return []
        names = self._column_names()
        columns = [names[int(j)] for j in np.flatnonzero(too_far)]
        return [
            FitWarning(
                "linear-term-needed",
                f"The mean is more than {largest_distance(X.shape[1]):.1f} standard deviations "
                f"above 0 in {listed(columns)}, further than in any model of {X.shape[1]} columns "
                "without a linear term: the fit compensates by spurious interactions.",
                tuple(columns),
            )
        ]


def _cancelled(X: FloatArray) -> ComparatorFit:
    """Return independent columns, as a fit that was cancelled before it began."""
    d = X.shape[1]
    return ComparatorFit(Parameters.independent(np.ones(d)), FitStatus.CANCELLED, (), math.nan)

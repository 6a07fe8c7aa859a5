"""What a comparator is given and ends with, and how that becomes the result all estimators have."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from vnce_engine.comparators.exponential import Parameters
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.inference.diagnostics import definiteness_warnings, diagnose
from vnce_engine.inference.result import FitResult, LinearEvidence, PenaltyStep
from vnce_engine.penalties.penalty import Penalty, PenaltyKind
from vnce_engine.runtime.reports import FitStatus, FitWarning

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ScaledTable:
    """A table made ready for a comparator, and what it may estimate."""

    X: FloatArray
    """(n, d): rows with something observed, NaN where missing; columns at mean square 1."""
    has_linear: bool
    """Whether h is estimated; it is zero otherwise."""
    penalty: Penalty
    rng: np.random.Generator

    def first_rows(self, num_rows: int) -> FloatArray:
        """Return `num_rows` rows at random, all if there are no more; each column is seen."""
        if len(self.X) <= num_rows:
            return self.X
        rows = self.rng.choice(len(self.X), size=num_rows, replace=False)
        unseen = np.isnan(self.X[rows]).all(axis=0)
        # A column so rarely observed that none of its cells was drawn brings all its rows along.
        extra = np.flatnonzero((~np.isnan(self.X[:, unseen])).any(axis=1))
        return self.X[np.union1d(rows, extra)]


@dataclass(frozen=True)
class Shrinkage:
    """The penalty that K was fitted with, and how it was chosen."""

    strength: float | None = None
    kind: PenaltyKind | None = None
    path: tuple[PenaltyStep, ...] = ()
    selection: str | None = None

    @classmethod
    def of(cls, penalty: Penalty) -> "Shrinkage":
        """Return a given penalty's; a strength of 0 is none."""
        return cls(penalty.strength, penalty.kind) if penalty.strength else cls()


@dataclass(frozen=True)
class ComparatorFit:
    """An estimate in scaled columns."""

    theta: Parameters
    status: FitStatus
    objective_path: tuple[float, ...]
    gradient_norm: float
    objective_name: str = "objective per row"
    message: str = ""
    """Says how the fit ended where the estimator's own words for the status would not do."""
    num_draws: int = 0
    """Completions of a missing cell that were averaged."""
    warnings: tuple[FitWarning, ...] = ()
    column_change: FloatArray | None = None
    """(d,): see `FitResult.column_change`."""


def present(
    fit: ComparatorFit,
    observations: Observations,
    model: QuadraticModel,
    inverse_k0: torch.Tensor,
    *,
    has_linear: bool,
    message: str,
    shrinkage: Shrinkage,
    warnings: tuple[FitWarning, ...],
    linear_evidence: LinearEvidence | None = None,
) -> FitResult:
    """Return the result; `model` is the fit's in the units of the table.

    `inverse_k0` (d,) has the units of the largest interaction: 1 / k0 of the fit's columns.
    """
    diagnostics = diagnose(
        observations,
        torch.from_numpy(fit.theta.precision),
        inverse_k0,
        gradient_norm=fit.gradient_norm,
        num_draws=fit.num_draws,
    )
    warnings = (*warnings, *fit.warnings, *definiteness_warnings(diagnostics))
    return FitResult(
        model=model,
        status=fit.status,
        message=fit.message or message,
        objective_path=fit.objective_path,
        objective_name=fit.objective_name,
        num_iterations=len(fit.objective_path),
        penalty=shrinkage.strength,
        penalty_path=shrinkage.path,
        linear_choice="free" if has_linear else "zero",
        linear_evidence=linear_evidence,
        diagnostics=diagnostics,
        warnings=warnings,
        selection=shrinkage.selection,
        penalty_kind=shrinkage.kind,
        column_change=fit.column_change,
    )

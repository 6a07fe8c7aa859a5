"""Score matching of a Gaussian by the scores of its marginals, from rows with missing cells.

A row with observed cells o is judged by the score of the marginal density of these cells,
s = -P (x_o - mu_o), P = K_oo - K_om K_mm⁻¹ K_mo, whose Fisher divergence from that of the data
integration by parts turns into

    J = mean over rows of ½ |s|² - tr P.

With nothing missing it is Hyvarinen's score matching, and the least J that of the inverse
covariance. P = VᵀKV with V = [I; -K_mm⁻¹ K_mo], and a change of K moves P as if V stayed: dJ/dK is
the mean of V (½ (SP + PS) - I) Vᵀ, S the second moment about mu of the rows of a pattern.
J depends on units; columns are at variance 1.
Source: Givens, Liu and Reeve (2025), "Score matching with missing data", ICML, where the marginal's
score is approximated, while that of a Gaussian is known; Hyvarinen (2005).
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor

from vnce_engine.distributions.gaussian_conditional import GaussianConditionals
from vnce_engine.penalties.penalty import Penalty
from vnce_engine.runtime.checkpoint import Saved
from vnce_engine.runtime.progress import FitCancelledError, Progress
from vnce_engine.runtime.reports import FitStatus

FloatArray = NDArray[np.float64]

# Numbers of a block of patterns, or of rows, that are held at a time.
_BLOCK_NUMBERS = 4_000_000
# Iterations of L-BFGS before it begins anew, which is where an interrupted fit goes on: taken up
# elsewhere, without its memory, it may come to another optimum where penalties are weak.
_ITERATIONS_OF_A_RUN = 50
# Steps that L-BFGS remembers.
_MEMORY = 20
# What a trial point counts at which K is not definite in floating point: worse than any other.
_FORBIDDEN = 1e12


@dataclass(frozen=True)
class MarginalScoreFit:
    """Mean (d,) and precision (d, d), and how the search ended."""

    mean: Tensor
    precision: Tensor
    objective_path: tuple[float, ...]
    """-J less the penalty, after each iteration."""
    gradient_norm: float
    """Largest entry of the gradient, by what the search moves."""
    status: FitStatus


def fit_marginal_score(
    X: FloatArray,
    penalty: Penalty,
    *,
    start: tuple[Tensor, Tensor],
    max_iterations: int,
    tolerance: float,
    progress: Progress,
) -> MarginalScoreFit:
    """Minimise J plus the penalty for rows X (n, d), NaN where missing, columns at variance 1.

    From a mean and a precision, whose Cholesky factor the search measures its steps by: of strongly
    dependent columns steps of one size in K itself lead nowhere. Ends when no entry of the gradient
    exceeds `tolerance`.
    """
    search = _Search(MarginalScore.of(X), penalty, start)
    status = FitStatus.MAX_ITERATIONS
    stage = progress.checkpoint.stage()
    if stage.saved is not None:
        search.go_on_from(stage.saved)
    try:
        while not search.is_over and len(search.path) < max_iterations:
            search.run(max_iterations, tolerance, progress)
            stage.save(search.to_save())
        if search.gradient_norm <= tolerance:
            status = FitStatus.CONVERGED
    except FitCancelledError:
        status = FitStatus.CANCELLED
    mean, precision = search.estimate()
    return MarginalScoreFit(mean, precision, tuple(search.path), search.gradient_norm, status)


class _Search:
    """The state between runs of L-BFGS, K = W L (W L)ᵀ, which is definite; L is I at the start.

    The mean is sought as W⁻ᵀ times a vector.
    """

    def __init__(
        self, objective: "MarginalScore", penalty: Penalty, start: tuple[Tensor, Tensor]
    ) -> None:
        d = objective.num_columns
        self._objective, self._penalty = objective, penalty
        self._lower = torch.tril_indices(d, d).unbind()
        mean, precision = start
        self._whitening = torch.linalg.cholesky(precision)
        identity = torch.eye(d, dtype=mean.dtype)
        self._point = torch.cat([identity[self._lower], self._whitening.mT @ mean])
        self.path: list[float] = []
        self.gradient_norm = math.nan
        self.is_over = False

    def run(self, max_iterations: int, tolerance: float, progress: Progress) -> None:
        """Take up to 50 iterations; it is over where they lead no further."""

        def callback(intermediate_result: OptimizeResult) -> None:
            self._point = torch.from_numpy(intermediate_result.x.copy())
            self.path.append(-float(intermediate_result.fun))

        def value_and_gradient(x: FloatArray) -> tuple[float, FloatArray]:
            last = self.path[-1] if self.path else None
            progress.report(len(self.path) / max_iterations, len(self.path), last)
            evaluated = self._value_and_gradient(x).numpy()
            return float(evaluated[0]), evaluated[1:]

        left = min(_ITERATIONS_OF_A_RUN, max_iterations - len(self.path))
        found = minimize(
            value_and_gradient,
            self._point.numpy(),
            jac=True,
            method="L-BFGS-B",
            callback=callback,
            options={"maxiter": left, "maxcor": _MEMORY, "gtol": tolerance, "ftol": 0.0},
        )
        self._point = torch.from_numpy(np.asarray(found.x))
        self.gradient_norm = float(np.abs(found.jac).max())
        self.is_over = self.gradient_norm <= tolerance or found.nit == 0
        if not self.path:  # the start was the optimum
            self.path.append(-float(found.fun))

    def estimate(self) -> tuple[Tensor, Tensor]:
        """Return the mean and K."""
        factor, mean = self._parts(self._point)
        precision = factor @ factor.mT
        return mean, 0.5 * (precision + precision.mT)

    def to_save(self) -> Saved:
        """Return what the next run begins with."""
        return self._point, tuple(self.path)

    def go_on_from(self, saved: Saved) -> None:
        """Go on from where an interrupted fit was."""
        self._point, path = saved
        self.path = list(path)

    def _parts(self, point: Tensor) -> tuple[Tensor, Tensor]:
        d = self._objective.num_columns
        factor = point.new_zeros(d, d)
        factor[self._lower] = point[:-d]
        mean = torch.linalg.solve_triangular(
            self._whitening.mT, point[-d:].unsqueeze(1), upper=True
        )
        return self._whitening @ factor, mean.squeeze(1)

    def _value_and_gradient(self, x: FloatArray) -> Tensor:
        """Return what is to be minimised, and its gradient."""
        factor, mean = self._parts(torch.from_numpy(x.copy()))
        precision = factor @ factor.mT
        terms = self._objective.terms(mean, precision)
        if terms is None:
            return torch.cat([mean.new_tensor([_FORBIDDEN]), mean.new_zeros(len(x))])
        value, by_precision, by_mean = terms
        value = value + float(self._penalty.value(precision))
        by_precision = by_precision + self._penalty.gradient(precision)
        by_factor = self._whitening.mT @ (2 * by_precision @ factor)
        by_point = torch.linalg.solve_triangular(self._whitening, by_mean.unsqueeze(1), upper=False)
        parts = (mean.new_tensor([value]), by_factor[self._lower], by_point.squeeze(1))
        return torch.cat(parts)


@dataclass(frozen=True)
class _Patterns:
    """Some missingness patterns, and what their rows say."""

    is_missing: Tensor
    """bool (p, d)"""
    shares: Tensor
    """(p,): of all rows"""
    mean: Tensor
    """(p, d), 0 where missing"""
    covariance: Tensor
    """(p, d, d), 0 where missing"""


@dataclass(frozen=True)
class MarginalScore:
    """J of a table."""

    num_columns: int
    blocks: tuple[_Patterns, ...]

    @classmethod
    def of(cls, X: FloatArray) -> Self:
        """Read rows (n, d), NaN where missing."""
        rows = torch.from_numpy(X)
        n, d = rows.shape
        is_missing, pattern, counts = torch.unique(
            rows.isnan(), dim=0, return_inverse=True, return_counts=True
        )
        order = torch.argsort(pattern, stable=True)
        groups = rows.nan_to_num(nan=0.0)[order].split(counts.tolist())
        blocks = []
        for part in torch.arange(len(counts)).split(max(_BLOCK_NUMBERS // d**2, 1)):
            of_part = [groups[int(i)] for i in part]
            means = torch.stack([group.mean(dim=0) for group in of_part])
            second = torch.stack([group.mT @ group / len(group) for group in of_part])
            covariance = second - means.unsqueeze(2) * means.unsqueeze(1)
            shares = counts[part].to(rows.dtype) / n
            blocks.append(_Patterns(is_missing[part], shares, means, covariance))
        return cls(d, tuple(blocks))

    def terms(self, mean: Tensor, precision: Tensor) -> tuple[float, Tensor, Tensor] | None:
        """Return J, its gradient in K (under tr(A B)) and in the mean; None where K has no root."""
        value, by_mean = 0.0, torch.zeros_like(mean)
        by_precision = torch.zeros_like(precision)
        for block in self.blocks:
            marginals = _Marginals.of(block.is_missing, precision)
            if marginals is None:
                return None
            deviation = torch.where(block.is_missing, 0.0, block.mean - mean)
            second = block.covariance + deviation.unsqueeze(2) * deviation.unsqueeze(1)
            scaled = marginals.precision @ second  # (p, d, d)
            squares = (scaled * marginals.precision).sum(dim=(1, 2))
            traces = marginals.precision.diagonal(dim1=1, dim2=2).sum(dim=1)
            value += float((block.shares * (0.5 * squares - traces)).sum())
            identity = torch.diag_embed((~block.is_missing).to(mean.dtype))
            slope = 0.5 * (scaled + scaled.mT) - identity
            lift = marginals.lift
            weighted = block.shares[:, None, None] * (lift @ slope @ lift.mT)
            by_precision += weighted.sum(dim=0)
            pull = marginals.precision @ (marginals.precision @ deviation.unsqueeze(2))
            by_mean -= (block.shares.unsqueeze(1) * pull.squeeze(2)).sum(dim=0)
        if not (math.isfinite(value) and torch.isfinite(by_precision).all()):
            return None
        return value, by_precision, by_mean


@dataclass(frozen=True)
class _Marginals:
    """The marginals of the observed cells of some patterns."""

    precision: Tensor
    """P (p, d, d), 0 where missing"""
    lift: Tensor
    """V (p, d, d): P = VᵀKV, columns 0 where missing"""

    @classmethod
    def of(cls, is_missing: Tensor, precision: Tensor) -> Self | None:
        """Return them; None where K_mm has no Cholesky factor."""
        factor = GaussianConditionals.of(precision, is_missing).factor
        if factor.isnan().any():
            return None
        across = is_missing.unsqueeze(2) & ~is_missing.unsqueeze(1)
        coefficients = torch.cholesky_solve(torch.where(across, precision, 0.0), factor)
        observed = torch.diag_embed((~is_missing).to(precision.dtype))
        lift = torch.where(is_missing.unsqueeze(2), -coefficients, observed)
        marginal = torch.where(is_missing.unsqueeze(2), 0.0, precision @ lift)
        return cls(0.5 * (marginal + marginal.mT), lift)


def row_scores(X: FloatArray, mean: Tensor, precision: Tensor) -> FloatArray:
    """Return -J's part (n,) of each row X (n, d), NaN where missing; -inf where K has no root."""
    rows = torch.from_numpy(X)
    parts = []
    for part in rows.split(max(_BLOCK_NUMBERS // rows.shape[1] ** 2, 1)):
        is_missing = part.isnan()
        marginals = _Marginals.of(is_missing, precision)
        if marginals is None:
            return np.full(len(X), -np.inf)
        deviation = torch.where(is_missing, 0.0, part.nan_to_num(nan=0.0) - mean).unsqueeze(2)
        squares = (marginals.precision @ deviation).square().sum(dim=(1, 2))
        traces = marginals.precision.diagonal(dim1=1, dim2=2).sum(dim=1)
        parts.append(traces - 0.5 * squares)
    scores: FloatArray = torch.cat(parts).numpy()
    return scores

"""One fit from observations to a result: choose the linear term, the penalty, then estimate."""

from dataclasses import dataclass

import torch

from vnce_engine.cycles import Cycles
from vnce_engine.diagnostics import diagnose, numerical_warnings
from vnce_engine.model import TruncatedGaussian
from vnce_engine.observations import Observations
from vnce_engine.penalty import PenaltyKind, weakest_safe_strength
from vnce_engine.problem import NUM_FOLDS, Problem, num_parameters
from vnce_engine.progress import FitCancelledError, OnStep, Progress
from vnce_engine.result import FitResult, FitStatus, LinearEvidence, PenaltyStep
from vnce_engine.selection import choose_linear, choose_penalty

AUTO = "auto"
MAX_CYCLES = 100
# The first part of the final fit, with less noise, need not be followed to the end.
_ROUGH_TOLERANCE = 1e-2
# Shares of the whole at which the stages end when everything is chosen.
_LINEAR_SHARE = 0.2
_PENALTY_SHARE = 0.7

MESSAGES = {
    FitStatus.CONVERGED: "The scaled change of a cycle fell below `tol`.",
    FitStatus.MAX_ITERATIONS: "The fit stopped at `max_iter` cycles before the estimates settled. "
    "Try a larger `max_iter`, a stronger `penalty`, or a larger `tol`.",
    FitStatus.NON_FINITE: "The objective became infinite or undefined; the last finite estimate is "
    "returned. Try a stronger `penalty` or a transform, and look for extreme values.",
    FitStatus.CANCELLED: "The fit was cancelled; the last finite estimate is returned.",
}


@dataclass(frozen=True)
class FitOptions:
    """What the statistician decides about a fit."""

    linear: str = AUTO
    """"auto", "free" or "zero"."""
    penalty: float | str | None = AUTO
    """A strength, None for none, or "auto"."""
    penalty_kind: PenaltyKind = PenaltyKind.ADAPTIVE
    noise_ratio: int = 10
    noise_draws: str = "sobol"
    tolerance: float = 3e-3
    max_cycles: int = MAX_CYCLES


def fit(
    observations: Observations, options: FitOptions, seed: int, on_step: OnStep | None = None
) -> FitResult:
    """Estimate the truncated Gaussian from non-negative `observations`, holes allowed.

    Equal observations, options and seed give equal results. Raises `ValueError` where a column
    has no two different observed values.
    """
    refuse_unbounded(observations, options)
    generator = torch.Generator().manual_seed(seed)
    is_choosing = AUTO in (options.linear, options.penalty)
    problem = Problem.prepare(
        observations,
        NUM_FOLDS if is_choosing else 1,
        options.noise_ratio,
        options.noise_draws,
        generator,
    )
    run = _Run(problem, options, Progress(on_step))
    try:
        status = run.complete()
    except FitCancelledError:
        status = FitStatus.CANCELLED
    return run.result(observations, status)


def refuse_unbounded(observations: Observations, options: FitOptions) -> None:
    """Refuse a penalty too weak to keep data and noise from being told apart with certainty."""
    num_rows = int(observations.observed.any(dim=1).sum())
    needed = num_parameters(observations.num_columns)
    if isinstance(options.penalty, str) or needed < num_rows:
        return
    weakest = weakest_safe_strength()
    if options.penalty is None or options.penalty < weakest:
        raise ValueError(
            f"`penalty` must be 'auto' or at least {weakest:g} with {needed} parameters and "
            f"{num_rows} rows, got {options.penalty!r}: the estimates would be unbounded"
        )


class _Run:
    """The state of one fit; every attribute holds its latest value, also after a cancellation."""

    def __init__(self, problem: Problem, options: FitOptions, progress: Progress) -> None:
        self._problem = problem
        self._options = options
        self._progress = progress
        self._linear = "zero" if options.linear == AUTO else options.linear
        self._linear_evidence: LinearEvidence | None = None
        self._strength = None if isinstance(options.penalty, str) else options.penalty
        self._path: tuple[PenaltyStep, ...] = ()
        self._cycles = Cycles(problem.start(self._linear), progress)
        self._sample = problem.sample()

    def complete(self) -> FitStatus:
        """Go through all stages; raise `FitCancelledError` when the caller says so."""
        options, progress = self._options, self._progress
        done = 0.0
        if options.linear == AUTO:
            end = _LINEAR_SHARE if options.penalty == AUTO else 0.5
            progress.enter("linear term", done, end)
            choice = choose_linear(self._problem, options.penalty_kind, progress)
            self._linear, self._linear_evidence = choice
            done = end
        start = self._problem.start(self._linear)
        if options.penalty == AUTO:
            progress.enter("penalty", done, _PENALTY_SHARE)
            chosen = choose_penalty(self._problem, options.penalty_kind, self._linear, progress)
            self._strength, self._path, start = chosen
            done = _PENALTY_SHARE
        progress.enter("fit", done, 1.0)
        self._cycles = Cycles(start, progress)
        return self._estimate()

    def _estimate(self) -> FitStatus:
        """Run the final fit, its last cycles with more noise."""
        problem, options = self._problem, self._options
        penalty = problem.penalty(
            self._strength, options.penalty_kind, self._linear, problem.num_rows
        )
        region = problem.region(self._linear)
        rough = max(options.tolerance, _ROUGH_TOLERANCE)
        self._progress.enter_part(0.0, 0.4)
        status = self._cycles.run(self._sample, penalty, region, rough, options.max_cycles)
        if status is not FitStatus.CONVERGED:
            return status
        self._progress.enter_part(0.4, 1.0)
        self._sample = problem.sample_with_more_noise()
        cycles_left = options.max_cycles - len(self._cycles.objective_path)
        return self._cycles.run(self._sample, penalty, region, options.tolerance, cycles_left)

    def result(self, observations: Observations, status: FitStatus) -> FitResult:
        """Undo the scaling and judge the fit."""
        problem, cycles = self._problem, self._cycles
        augmented = cycles.augmented
        diagnostics = diagnose(
            observations, self._sample, augmented, cycles.point, problem.inverse_k0(self._linear)
        )
        return FitResult(
            model=TruncatedGaussian.from_augmented(augmented).with_columns_scaled(problem.scale),
            status=status,
            message=MESSAGES[status],
            objective_path=tuple(cycles.objective_path),
            num_iterations=len(cycles.objective_path),
            penalty=self._strength,
            penalty_path=self._path,
            linear_choice=self._linear,
            linear_evidence=self._linear_evidence,
            diagnostics=diagnostics,
            warnings=numerical_warnings(diagnostics, self._path, observations),
        )

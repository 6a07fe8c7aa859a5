"""One fit of any model, from table to result: choose h, the penalty, then estimate."""

import math
from dataclasses import astuple, dataclass, field, replace
from typing import Generic, assert_never

import torch
from torch import Tensor

from vnce_engine.contrastive.prepared import PreparedTable, RowSampleT
from vnce_engine.data.canonical import canonical_order
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.quadratic import num_parameters
from vnce_engine.inference.diagnostics import (
    choice_warnings,
    diagnose_contrastive,
    is_separated,
    linear_warnings,
    numerical_warnings,
    stability_warnings,
)
from vnce_engine.inference.parameter_draws import parameter_draws
from vnce_engine.inference.result import (
    Diagnostics,
    FitResult,
    LinearEvidence,
    Stability,
)
from vnce_engine.inference.uncertainty import MOST_PARAMETERS
from vnce_engine.optim.constraints import Constraints
from vnce_engine.penalties.boundedness import unbounded
from vnce_engine.penalties.penalty import Penalty, PenaltyKind, weakest_safe_strength
from vnce_engine.pipeline.assessment import Assessment, assess
from vnce_engine.runtime import reports
from vnce_engine.runtime.device import chosen_device
from vnce_engine.runtime.progress import FitCancelledError, Progress
from vnce_engine.runtime.reports import FitStatus
from vnce_engine.selection.choice import PenaltyChoice, Selection
from vnce_engine.selection.ebic import choose_by_ebic
from vnce_engine.selection.grid import strengths
from vnce_engine.selection.held_out import choose_by_held_out_rows, choose_linear
from vnce_engine.selection.setting import Setting
from vnce_engine.selection.stability import StabilityRule, choose_by_stability

AUTO = "auto"
# Where K is about indefinite log det K has this weight over n: that of two normal rows' likelihood.
BARRIER_ROWS = 1.0
MAX_CYCLES = 100
# Noise rows at least, in all: of a short table a few for each data row would leave the choice of a
# penalty, and with it the graph, to chance.
_LEAST_NOISE_ROWS = 6_000
# Kinds of penalty that held-out rows choose from unless one is asked for.
_OPEN_KINDS = (PenaltyKind.ADAPTIVE, PenaltyKind.CENTRED_RIDGE)
# The first part of the final fit, with less noise, need not be followed to the end.
_ROUGH_TOLERANCE = 3e-2
# Times that noise is brought nearer to the data, where that can be done; two are mostly enough.
_MAX_FINAL_SAMPLES = 5
# Rows that are enough to choose h and a strength that does not depend on how many there are.
_CHOOSING_ROWS = 6_000
# Shares of the whole at which the stages end when everything is chosen.
_LINEAR_SHARE = 0.2
_PENALTY_SHARE = 0.7
# And the share of the estimate without how sure it is.
_ESTIMATE_SHARE = 0.8

MESSAGES = {
    **reports.MESSAGES,
    FitStatus.CONVERGED: "The change of a cycle fell below `tol`, or far below the estimates' "
    "standard errors.",
    FitStatus.MAX_ITERATIONS: "The fit stopped at `max_iter` cycles before it converged.",
    FitStatus.NON_FINITE: "The objective became infinite or undefined; the last finite estimate is "
    "returned. Look for extreme values.",
}

NO_OVERLAP = " But noise and data hardly overlap: do not interpret K and c; see the warnings."


@dataclass(frozen=True)
class FitOptions:
    """What the statistician decides about a fit."""

    linear: str = AUTO
    """"auto", "free" or "zero"."""
    penalty: float | str | None = AUTO
    """A strength, None for none, or "auto"."""
    penalty_kind: PenaltyKind | None = None
    """None for the adaptive one, and a centred ridge where held-out rows prefer it."""
    penalties: tuple[float, ...] | None = None
    """The strengths to choose from, strong to weak; None for a grid of our own."""
    selection: Selection = Selection.HELD_OUT
    ebic_gamma: float = 0.5
    stability: StabilityRule = field(default_factory=StabilityRule)
    relaxation: float | None = None
    """Of the adaptive penalty; None for as much as is chosen with its strength, or wholly."""
    barrier_rows: float = BARRIER_ROWS
    """Rows that the barrier against an indefinite K is worth; 0 for none."""
    noise_ratio: int = 10
    noise_scale: float = 1.0
    noise_draws: str = "sobol"
    tolerance: float = 3e-3
    max_cycles: int = MAX_CYCLES
    device: str | torch.device = "cpu"
    """Where the fit works; all is drawn on the CPU, so that it does not change the numbers."""

    def noise_rows_each(self, num_rows: int) -> int:
        """Return how many noise rows each of so many data rows has: the ratio, more if few."""
        return max(self.noise_ratio, math.ceil(_LEAST_NOISE_ROWS / num_rows))


def fit_table(
    problem_class: type[PreparedTable[RowSampleT]],
    observations: Observations,
    options: FitOptions,
    seed: int,
    progress: Progress | None = None,
) -> FitResult:
    """Estimate the model of a class of problems from observations, missing cells allowed.

    Equal observations, options and seed give equal results. With the checkpoint of an interrupted
    fit of the same three, `Checkpoint.load(step.checkpoint.dump())`, it goes on from there.

    Raises `ValueError` where a column has no two different observed values, where a weaker penalty
    than is safe meets as many parameters as rows, or where the checkpoint is another fit's.
    """
    refuse_unbounded(observations, options)
    progress = progress or Progress(None)
    # It may go on on another device.
    choices = (problem_class.__name__, replace(options, device="cpu"))
    progress.checkpoint.begin_fit(observations.name_of_fit(choices, seed))
    rows, columns = canonical_order(observations)
    problem = problem_class.prepare(
        observations.reordered(rows, columns).to(chosen_device(options.device)),
        options.noise_rows_each(observations.num_rows),
        options.noise_draws,
        torch.Generator().manual_seed(seed),
        options.noise_scale,
    )
    progress.checkpoint.move_to(problem.scale.device)
    run = _Run(observations, problem, options, progress)
    try:
        status = run.complete()
    except FitCancelledError:
        status = FitStatus.CANCELLED
    return run.result(status).with_columns_reordered(torch.argsort(columns))


def refuse_unbounded(observations: Observations, options: FitOptions) -> None:
    """Refuse a penalty too weak to keep data and noise from being told apart with certainty."""
    num_rows = int(observations.observed.any(dim=1).sum())
    if options.penalty == AUTO and options.selection is Selection.EBIC:
        smallest = num_parameters(observations.num_columns, num_edges=0)
        if smallest >= num_rows:
            raise ValueError(
                f"`selection='ebic'` needs more rows than the {smallest} parameters of a graph "
                f"without edges, got {num_rows}"
            )
    needed = num_parameters(observations.num_columns)
    if needed < num_rows:
        return
    weakest = weakest_safe_strength(options.penalty_kind or PenaltyKind.ADAPTIVE)
    rule = f"at least {weakest:g} with {needed} parameters and {num_rows} rows"
    if isinstance(options.penalty, str):
        if options.penalties and min(options.penalties) < weakest:
            raise unbounded("penalties", rule, min(options.penalties))
    elif options.penalty is None or options.penalty < weakest:
        raise unbounded("penalty", f"'auto' or {rule}", options.penalty)


class _Run(Generic[RowSampleT]):
    """The state of one fit; every attribute holds its latest value, also after a cancellation."""

    def __init__(
        self,
        observations: Observations,
        problem: PreparedTable[RowSampleT],
        options: FitOptions,
        progress: Progress,
    ) -> None:
        self._observations = observations
        self._options = options
        self._progress = progress
        kind = options.penalty_kind or PenaltyKind.ADAPTIVE
        self._setting = Setting(problem, kind, options.linear == "free", options.barrier_rows)
        self._linear_evidence: LinearEvidence | None = None
        self._strength = None if isinstance(options.penalty, str) else options.penalty
        self._choice: PenaltyChoice | None = None
        self._penalty: Penalty | None = None
        self._cycles = self._setting.cycles(self._setting.start(), progress)
        self._sample = problem.sample
        self._noise_starts: list[int] = []
        self._diagnostics: Diagnostics | None = None
        self._assessment = Assessment.missing("the fit has not converged")
        self._draws: list[Tensor] = []

    def complete(self) -> FitStatus:
        """Go through all stages; raise `FitCancelledError` when the caller says so."""
        progress = self._progress
        start, done = self._choose_all()
        is_assessed = self._num_parameters <= MOST_PARAMETERS
        progress.enter("fit", done, _ESTIMATE_SHARE if is_assessed else 1.0)
        self._cycles = self._setting.cycles(start, progress)
        status = self._estimate()
        # A stage, as cells are drawn anew after it, and the surrogate's last point is not kept.
        self._diagnostics = Diagnostics(
            *progress.checkpoint.once(lambda: astuple(self._diagnose()))
        )
        if status is FitStatus.CONVERGED:
            if is_assessed:
                progress.enter("uncertainty", _ESTIMATE_SHARE, 1.0)
            self._assess(self._diagnostics)
            progress.report(1.0, len(self._cycles.objective_path), self._cycles.objective_path[-1])
        return status

    @property
    def _num_parameters(self) -> int:
        return num_parameters(self._setting.problem.num_columns)

    def _diagnose(self) -> Diagnostics:
        """Judge the estimate by the draws and the point that its last cycle has left."""
        problem, augmented = self._setting.problem, self._cycles.augmented
        units = problem.interaction_units(augmented, has_linear=self._setting.has_linear)
        return diagnose_contrastive(
            self._observations, self._sample, augmented, self._cycles.point, units
        )

    def _assess(self, diagnostics: Diagnostics) -> None:
        if is_separated(diagnostics):
            self._assessment = Assessment.missing("noise and data hardly overlap")
            return
        self._assessment = assess(
            self._setting,
            self._sample,
            self._cycles.augmented,
            self._strength,
            self._progress,
            may_add_linear=self._options.linear == AUTO,
        )
        step = self._assessment.step
        if step is not None:
            penalty, _ = self._penalty_and_constraints()
            relaxed = penalty.relaxed(step.augmented[:-1, :-1], self._relaxation)
            self._draws = parameter_draws(step, relaxed, self._setting.problem.generator)

    def _choose_all(self) -> tuple[Tensor, float]:
        """Choose h and the strength where asked to; return where to start, the share of work done.

        The rows that choose need no memory any more once this has returned.
        """
        options, progress = self._options, self._progress
        done = 0.0
        few_rows = self._setting.problem.with_at_most(_CHOOSING_ROWS)
        if options.linear == AUTO:
            end = _LINEAR_SHARE if options.penalty == AUTO else 0.5
            progress.enter("linear term", done, end)
            has_linear, self._linear_evidence = choose_linear(
                replace(self._setting, problem=few_rows), progress
            )
            self._setting = replace(self._setting, has_linear=has_linear)
            done = end
        start = self._setting.start()
        if options.penalty == AUTO:
            progress.enter("penalty", done, _PENALTY_SHARE)
            self._choice = self._choose(few_rows)
            self._strength, start = self._choice.strength, self._choice.augmented
            self._setting = replace(self._setting, kind=self._choice.kind or self._setting.kind)
            done = _PENALTY_SHARE
        return start, done

    def _choose(self, few_rows: PreparedTable[RowSampleT]) -> PenaltyChoice:
        options, setting, progress = self._options, self._setting, self._progress
        # Strengths are a prior's, the same for any number of rows, but those of L1 grow with it.
        if options.selection is Selection.HELD_OUT and setting.kind is not PenaltyKind.L1:
            setting = replace(setting, problem=few_rows)
        if options.selection is Selection.HELD_OUT:
            kinds = [options.penalty_kind] if options.penalty_kind else _OPEN_KINDS
            grids = [
                (kind, options.penalties or strengths(replace(setting, kind=kind), progress))
                for kind in kinds
            ]
            return choose_by_held_out_rows(setting, grids, progress)
        grid = options.penalties or strengths(setting, progress)
        match options.selection:
            case Selection.EBIC:
                return choose_by_ebic(setting, grid, options.ebic_gamma, progress)
            case Selection.STABILITY:
                return choose_by_stability(setting, grid, options.stability, progress)
            case _:
                assert_never(options.selection)

    def _estimate(self) -> FitStatus:
        """Run the final fit, its last cycles with better noise and a relaxed penalty."""
        options = self._options
        problem = self._setting.problem
        penalty, constraints = self._penalty_and_constraints()
        self._penalty = penalty if penalty.strength > 0 else None
        rough = max(options.tolerance, _ROUGH_TOLERANCE)
        self._progress.enter_part(0.0, 0.4)
        status = self._cycles.run(self._sample, penalty, constraints, rough, options.max_cycles)
        if status is FitStatus.NON_FINITE:
            return status
        self._progress.enter_part(0.4, 1.0)
        for _ in range(_MAX_FINAL_SAMPLES):
            if self._cycles_left() <= 0:
                return FitStatus.MAX_ITERATIONS
            self._sample = problem.final_sample(self._cycles.augmented)
            self._noise_starts.append(len(self._cycles.objective_path))
            relaxed = penalty.relaxed(self._cycles.augmented[:-1, :-1], self._relaxation)
            status = self._cycles.run(
                self._sample, relaxed, constraints, options.tolerance, self._cycles_left()
            )
            if problem.is_noise_near(self._sample, self._cycles.augmented):
                break
        return status

    @property
    def _relaxation(self) -> float:
        """By how much the adaptive penalty is relaxed."""
        if self._options.relaxation is not None:
            return self._options.relaxation
        chosen = None if self._choice is None else self._choice.relaxation
        return 1.0 if chosen is None else chosen

    def _cycles_left(self) -> int:
        return self._options.max_cycles - len(self._cycles.objective_path)

    def _penalty_and_constraints(self) -> tuple[Penalty, Constraints]:
        """Return those of the final fit, to a chosen graph without a penalty where that is safe."""
        setting, num_rows = self._setting, self._setting.problem.num_rows
        graph = None if self._choice is None else self._choice.graph
        if graph is None:
            return setting.penalty(self._strength, num_rows), setting.constraints()
        needed = num_parameters(len(graph), int(graph.sum()) // 2)
        strength = None if needed < num_rows else weakest_safe_strength(PenaltyKind.RIDGE)
        ridge = replace(setting, kind=PenaltyKind.RIDGE)
        return ridge.penalty(strength, num_rows), ridge.constraints(graph)

    def result(self, status: FitStatus) -> FitResult:
        """Undo the scaling and say what has been found."""
        cycles, choice, penalty = self._cycles, self._choice, self._penalty
        path = () if choice is None else choice.path
        stability = None if choice is None else choice.stability
        diagnostics, assessment = self._diagnostics or self._diagnose(), self._assessment
        return FitResult(
            model=self._setting.problem.model(cycles.augmented),
            status=status,
            message=MESSAGES[status] + (NO_OVERLAP if is_separated(diagnostics) else ""),
            objective_path=tuple(cycles.objective_path),
            num_iterations=len(cycles.objective_path),
            penalty=None if penalty is None else penalty.strength,
            penalty_path=path,
            linear_choice="free" if self._setting.has_linear else "zero",
            linear_evidence=self._linear_evidence,
            diagnostics=diagnostics,
            warnings=(
                *numerical_warnings(diagnostics, path),
                *stability_warnings(stability),
                *choice_warnings(self._unsettled()),
                *linear_warnings(assessment.linear_finding),
            ),
            selection=None if choice is None else self._selection(stability),
            penalty_kind=None if penalty is None else penalty.kind,
            penalty_relaxation=(
                self._relaxation
                if penalty is not None and penalty.kind is PenaltyKind.ADAPTIVE
                else None
            ),
            stability=stability,
            noise_starts=tuple(self._noise_starts),
            uncertainty=assessment.uncertainty,
            no_uncertainty=assessment.absence,
            model_draws=tuple(self._setting.problem.model(draw) for draw in self._draws),
        )

    def _selection(self, stability: Stability | None) -> str:
        """Return the rule that chose: held-out rows where half-samples could not."""
        if stability is not None and stability.inclusion is None:
            return str(Selection.HELD_OUT)
        return str(self._options.selection)

    def _unsettled(self) -> list[str]:
        """Return what was chosen among fits of which none had settled."""
        evidence, choice = self._linear_evidence, self._choice
        return [
            *(["linear term"] if evidence is not None and not evidence.settled else []),
            *(["penalty"] if choice is not None and not choice.is_settled else []),
        ]

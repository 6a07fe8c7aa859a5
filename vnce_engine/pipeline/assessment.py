"""How sure the edges of a converged fit are: which step without the penalty says so."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vnce_engine.contrastive.prepared import RowSampleT
from vnce_engine.distributions.ill_conditioned import SamplingWarning
from vnce_engine.distributions.quadratic import num_parameters
from vnce_engine.inference.diagnostics import LinearFinding
from vnce_engine.inference.result import Uncertainty
from vnce_engine.inference.uncertainty import MOST_PARAMETERS, UnpenalisedStep
from vnce_engine.runtime.progress import Progress
from vnce_engine.selection.setting import Setting

# Shares of a penalty's strength at which an estimate is sought that the rows are nearer to, and how
# far each is followed.
_SHARES = (0.1, 0.01, 0.001)
_TOLERANCE = 3e-2
_CYCLES = 20
# Rows a parameter that are many.
_MANY_ROWS = 10
# The level at which a linear term that was left out is found all the same.
_LEVEL = 0.05
# And that at which one is missed that was not asked for.
_LEVEL_IF_ASKED = 0.01
# Rows a parameter without which the test finds one too often.
_ROWS_OF_THE_TEST = 5


@dataclass(frozen=True)
class Assessment:
    """How sure edges are, or why that is not known."""

    uncertainty: Uncertainty | None
    absence: str | None
    """Why there is no uncertainty; None where there is."""
    step: UnpenalisedStep | None = None
    """The step from the penalised estimate, with the entries that it estimates."""
    linear_finding: LinearFinding | None = None
    """What a reader must know of h = 0, which the fit takes for true, if anything."""

    @classmethod
    def missing(cls, reason: str) -> "Assessment":
        """Return one without uncertainty."""
        return cls(None, reason)


def assess(
    setting: Setting[RowSampleT],
    sample: RowSampleT,
    augmented: Tensor,
    strength: float | None,
    progress: Progress,
    *,
    may_add_linear: bool,
) -> Assessment:
    """Return how sure the edges are of an estimate A (d + 1, d + 1) that the `sample` has led to.

    The step takes off what the penalty, of this `strength`, does to first order. Where it leads too
    far for that, and there are more rows than parameters, fits with weaker penalties lead to an
    estimate that it is shorter from.

    Without a linear term, h = 0 is tested, too, and where the test rejects it h is estimated in the
    step if that `may_add_linear`. Held-out rows leave out a term whose worth to predictions is less
    than the price of estimating it, and intervals that took their choice for true would hold the
    truth too seldom.
    """
    problem = setting.problem
    parameters = num_parameters(problem.num_columns)
    if parameters > MOST_PARAMETERS:
        return Assessment.missing(f"the model has more than {MOST_PARAMETERS} parameters")
    rows = problem.scored_rows(sample, progress)
    try:
        estimated = setting.constraints().estimated()
        first = step = UnpenalisedStep.of(rows, augmented, estimated, problem.clusters)
        finding = None
        if step is not None and not setting.has_linear:
            finding, step = _tested(setting, step, may_add_linear=may_add_linear)
        if finding is not None and finding.is_added:
            setting = replace(setting, has_linear=True)
        if step is not None and parameters < problem.num_rows:
            step = _nearer(setting, sample, step, strength, progress)
    except SamplingWarning:
        return Assessment.missing("columns are too nearly collinear to draw rows from the model")
    if step is None:
        reason = "the rows are too few, or too much alike, for the number of parameters"
        return Assessment(None, reason, first)
    return Assessment(step.uncertainty(), None, first, finding)


def _tested(
    setting: Setting[RowSampleT], step: UnpenalisedStep, *, may_add_linear: bool
) -> tuple[LinearFinding | None, UnpenalisedStep]:
    """Return what a test of h = 0 finds, if anything, and the step to go on from; one draw."""
    problem = setting.problem
    if _ROWS_OF_THE_TEST * num_parameters(problem.num_columns) > problem.num_independent:
        return LinearFinding(None, is_added=False) if may_add_linear else None, step
    constraints = replace(setting, has_linear=True).constraints()
    with_linear = step.with_estimated(constraints.estimated())
    if with_linear is None:
        return None, step
    p_value = with_linear.p_value(_linear(step.augmented))
    if p_value > (_LEVEL if may_add_linear else _LEVEL_IF_ASKED):
        return None, step
    return LinearFinding(p_value, may_add_linear), with_linear if may_add_linear else step


def _nearer(
    setting: Setting[RowSampleT],
    sample: RowSampleT,
    step: UnpenalisedStep,
    strength: float | None,
    progress: Progress,
) -> UnpenalisedStep:
    """Return a step that starts nearer to the rows if this one starts too far off.

    From an estimate that the rows are no further from than from the truth, in the mean, a step is
    as good as from there. With many rows a parameter it should be shorter, as what it leaves, about
    its square, is less than a standard error then only. With few, estimates without any penalty are
    poor; and under strong dependence NCE's are, so that the nearest estimate found is taken.
    """
    problem, estimated = setting.problem, setting.constraints().estimated()
    many = problem.num_independent / (_MANY_ROWS * num_parameters(problem.num_columns))
    # Chance in drawn rows hides what is nearer than it reaches.
    share = max(min(1.0, 1 / many), step.rows.chance)
    fit = setting.cycles(step.augmented, progress)
    for weaker in [None] if strength is None else [part * strength for part in _SHARES]:
        if step.distance <= share * step.expected_distance:
            break
        penalty = setting.penalty(weaker, problem.num_rows)
        fit.run(sample, penalty, setting.constraints(), _TOLERANCE, _CYCLES)
        nearer = UnpenalisedStep.of(step.rows, fit.augmented, estimated, problem.clusters)
        if nearer is None or nearer.distance >= step.distance:
            # Its rows have been drawn anew since.
            rows, start = step.rows, step.augmented
            return UnpenalisedStep.of(rows, start, estimated, problem.clusters) or step
        step = nearer
    return step


def _linear(augmented: Tensor) -> Tensor:
    """Return bool (d + 1, d + 1): where A has h."""
    is_linear = torch.zeros_like(augmented, dtype=torch.bool)
    is_linear[:-1, -1] = is_linear[-1, :-1] = True
    return is_linear

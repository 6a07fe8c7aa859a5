"""Choosing the linear term, and the penalty's kind and strength, by rows held out of the fit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from vnce_engine.contrastive.prepared import RowSampleT
from vnce_engine.distributions.quadratic import num_parameters
from vnce_engine.inference.result import LinearEvidence, PenaltyStep
from vnce_engine.penalties.penalty import Penalty, PenaltyKind
from vnce_engine.runtime.progress import Progress
from vnce_engine.runtime.reports import FitStatus
from vnce_engine.selection.choice import PenaltyChoice, num_edges
from vnce_engine.selection.cross_validation import cross_validated, gain_of_relaxing
from vnce_engine.selection.held_out_gains import (
    WINSORISED_SHARE,
    has_fallen,
    mean_and_error,
    winsorised_mean,
)
from vnce_engine.selection.setting import Setting

# At this strength the linear term is judged, before the strength is known; and at this one where
# there are as many parameters as rows: weaker penalties overfit there and hid a true linear term.
_TRIAL_STRENGTH = 0.3
_WIDE_TRIAL_STRENGTH = 1.0
# A fit with a linear term takes longer to settle; cut short it would lose to the one without.
_TRIAL_CYCLES = 20
# h must gain this many standard errors.
_LINEAR_STANDARD_ERRORS = 1.35
# And a fit cut short is taken all the same where it is so many better.
_CLEAR_STANDARD_ERRORS = 5.0
# Another kind of penalty than the first must gain so many: it gives up that interactions may be
# absent one by one, which ranks them worse where they are (rings with 50 % missing: AUC .80-.83 by
# a centred ridge that gained .9 to 5 standard errors, .83-.90 by the adaptive penalty). Where they
# are all alike it gains 2 to 6, and has half the error.
_KIND_STANDARD_ERRORS = 2.0
# Strengths count for the choice as exp(-2 (gap / standard error)²) of their gap to the best one:
# half a standard error below it .6, two below it nothing.
_WEIGHT_OF_SQUARE = 2.0
# The path ends where the held-out objective is so many standard errors below its best, or fewer
# after as many falls in a row: it may fall before true interactions leave the neighbourhood of
# zero, all at once, and then rises by far more (of iris, by 1.7 and then up by 20).
_LOST = 3.0
_FALLS = 2
_LOST_AFTER_FALLS = 1.5
# And not before this strength of an adaptive penalty.
_ALWAYS_REACHED = 0.4
# Share of the work that goes into whether the adaptive penalty is to be relaxed. The two fits are
# near each other, so that what either has left to do would count.
_RELAXING_SHARE = 0.1
_RELAXING_TOLERANCE = 5e-3
# Fits that only compare are followed less far than the final one: further cycles move all of them
# alike, and took half as long again without better choices.
_TOLERANCE = 2e-2
_MAX_CYCLES = 6


def _trial_penalty(setting: Setting[RowSampleT], num_rows: int) -> Penalty:
    """Return the penalty of a fit to `num_rows` rows before the strength is chosen.

    In place of an L1 penalty, whose strength at this stage need not fit the table, it is adaptive.
    """
    problem = setting.problem
    kind = PenaltyKind.ADAPTIVE if setting.kind is PenaltyKind.L1 else setting.kind
    is_wide = num_parameters(problem.num_columns) >= problem.num_rows
    strength = _WIDE_TRIAL_STRENGTH if is_wide else _TRIAL_STRENGTH
    return replace(setting, kind=kind).penalty(strength, num_rows)


def choose_linear(setting: Setting[RowSampleT], progress: Progress) -> tuple[bool, LinearEvidence]:
    """Fit with and without h; keep h if rows held out gain more than 1.35 SE by it.

    A fit that has not converged yields to the other one where that has, unless it is clearly
    better. The gain is a winsorised mean over rows: on raw tables with heavy tails, the loss of one
    extreme row may exceed that of all others together, and neither model describes it.
    """
    problem = setting.problem
    values, converged = {}, []
    for position, linear in enumerate(("zero", "free")):
        progress.enter_part(position / 2, (position + 1) / 2)
        trial = replace(setting, has_linear=linear == "free")
        penalty = _trial_penalty(trial, problem.num_rows)
        trial = replace(trial, kind=penalty.kind)
        cycles = trial.cycles(trial.start(), progress)
        status = cycles.run(problem.sample, penalty, trial.constraints(), _TOLERANCE, _TRIAL_CYCLES)
        if status is FitStatus.CONVERGED:
            converged.append(linear)
        values[linear] = progress.checkpoint.once(
            partial(cross_validated, trial, cycles, penalty, progress)
        )
    gain, standard_error = winsorised_mean(values["free"] - values["zero"], problem.clusters)
    rule = (
        f"free if the gain, its outer {WINSORISED_SHARE:.0%} of rows on either side winsorised, "
        f"exceeds {_LINEAR_STANDARD_ERRORS:g} standard errors"
    )
    choice = "free" if gain > _LINEAR_STANDARD_ERRORS * standard_error else "zero"
    if len(converged) == 1 and abs(gain) < _CLEAR_STANDARD_ERRORS * standard_error:
        (choice,) = converged
        rule += f"; but only the fit with {choice} had converged, and it was taken"
    return choice == "free", LinearEvidence(gain, standard_error, rule, tuple(converged))


@dataclass(frozen=True)
class _Path:
    """Fits of one kind of penalty, from strong to weak."""

    kind: PenaltyKind
    strengths: Sequence[float]
    values: Sequence[Tensor]
    """(n,) each: the held-out objective of every row."""
    points: Sequence[Tensor]
    has_converged: bool
    clusters: Tensor | None = None
    """int64 (n,): the cluster of each row; None where rows are independent."""

    @property
    def best(self) -> Tensor:
        """The values of the strength with the largest sum."""
        return max(self.values, key=lambda value: float(value.sum()))

    def strength(self) -> float:
        """Return a strength between the best ones, by how near each is to the best.

        A mean varies less, and moves less by a little other noise, than the best of a grid.
        """
        best = max(range(len(self.values)), key=lambda i: float(self.values[i].sum()))
        if num_edges(self.points[best]) == 0:
            # Graphs without edges differ by what their fits have left; the strongest serves all.
            return self.strengths[0]
        weights = [
            _weight(*mean_and_error(self.best - value, self.clusters)) for value in self.values
        ]
        total = sum(weights)
        if not total > 0:  # objectives that are not finite cannot be compared
            return self.strengths[0]
        # From the best one, so that it is that to the bit where no other counts.
        logs = [math.log(strength / self.strengths[best]) for strength in self.strengths]
        mean = sum(w * x for w, x in zip(weights, logs, strict=False)) / total
        return self.strengths[best] * math.exp(mean)

    def steps(self, best: Tensor, nearest: int | None) -> list[PenaltyStep]:
        """Return the path, standard errors being those of gaps to the `best` values of any."""
        return [
            PenaltyStep(
                kind=self.kind,
                strength=self.strengths[i],
                criterion=float(value.mean()),
                standard_error=mean_and_error(best - value, self.clusters)[1],
                num_edges=num_edges(self.points[i]),
                chosen=i == nearest,
            )
            for i, value in enumerate(self.values)
        ]

    def nearest(self, strength: float) -> int:
        """Return the position of the fit whose strength is nearest, by ratio."""
        return min(
            range(len(self.values)), key=lambda i: abs(math.log(self.strengths[i] / strength))
        )


def choose_by_held_out_rows(
    setting: Setting[RowSampleT],
    grids: Sequence[tuple[PenaltyKind, Sequence[float]]],
    progress: Progress,
) -> PenaltyChoice:
    """Follow the path of every kind, from strong to weak; return the best kind's best strength.

    The kind is the first unless another has a held-out objective better by two standard errors,
    and the strength a mean of those that do about as well. Folds, noise and uniforms are the same
    for all. The adaptive penalty is relaxed as far as rows held out are better by it.
    """
    paths = []
    each = (1 - _RELAXING_SHARE) / len(grids)
    for position, (kind, strengths) in enumerate(grids):
        share = (position * each, (position + 1) * each)
        paths.append(_follow(replace(setting, kind=kind), strengths, progress, share))
    chosen = paths[0]
    for path in paths[1:]:
        gain, error = mean_and_error(path.best - chosen.best, path.clusters)
        if gain > _KIND_STANDARD_ERRORS * error:
            chosen = path
    strength = chosen.strength()
    nearest = chosen.nearest(strength)
    steps = [
        step
        for path in paths
        for step in path.steps(chosen.best, nearest if path is chosen else None)
    ]
    relaxation = None
    if chosen.kind is PenaltyKind.ADAPTIVE:
        progress.enter_part(1 - _RELAXING_SHARE, 1.0)
        relaxation = _relaxation(
            replace(setting, kind=chosen.kind), strength, chosen.points[nearest], progress
        )
    return PenaltyChoice(
        strength,
        tuple(steps),
        chosen.points[nearest],
        kind=chosen.kind,
        is_settled=chosen.has_converged,
        relaxation=relaxation,
    )


def _relaxation(
    setting: Setting[RowSampleT], strength: float, start: Tensor, progress: Progress
) -> float:
    """Return how far to relax an adaptive penalty, from 0 to 1, by how much rows held out gain.

    Both ends count by their gap to the better one, as strengths do. Not at all where there are as
    many parameters as rows: a Newton step is then no estimate of what a fold's rows are worth.
    """
    problem = setting.problem
    if num_parameters(problem.num_columns) >= problem.num_rows:
        return 0.0
    fit = setting.cycles(start, progress)
    penalty = setting.penalty(strength, problem.num_rows)
    fit.run(problem.sample, penalty, setting.constraints(), _RELAXING_TOLERANCE, _TRIAL_CYCLES)
    plain = fit.augmented
    relaxed = penalty.relaxed(plain[:-1, :-1])
    fit.run(problem.sample, relaxed, setting.constraints(), _RELAXING_TOLERANCE, _TRIAL_CYCLES)
    gain, error = mean_and_error(
        progress.checkpoint.once(
            partial(gain_of_relaxing, setting, plain, fit.augmented, penalty, progress)
        ),
        problem.clusters,
    )
    if math.isnan(gain):
        return 0.0
    of_worse = _weight(abs(gain), error)
    return (1.0 if gain > 0 else of_worse) / (1 + of_worse)


def _weight(gap: float, error: float) -> float:
    """Return what a model counts whose held-out objective is so far from the best, 1 for none."""
    if not error > 0:
        return float(gap <= 0)
    return math.exp(-_WEIGHT_OF_SQUARE * (gap / error) ** 2)


def _follow(
    setting: Setting[RowSampleT],
    strengths: Sequence[float],
    progress: Progress,
    share: tuple[float, float],
) -> _Path:
    problem = setting.problem
    fit = setting.cycles(setting.start(), progress)
    values: list[Tensor] = []
    points: list[Tensor] = []
    has_converged = False
    for position, strength in enumerate(strengths):
        start, end = (
            share[0] + (share[1] - share[0]) * part / len(strengths)
            for part in (position, position + 1)
        )
        progress.enter_part(start, end)
        penalty = setting.penalty(strength, problem.num_rows)
        status = fit.run(problem.sample, penalty, setting.constraints(), _TOLERANCE, _MAX_CYCLES)
        has_converged |= status is FitStatus.CONVERGED
        points.append(fit.augmented)
        if status is FitStatus.NON_FINITE:
            values.append(torch.full_like(problem.observations.values[:, 0], -math.inf))
            break
        values.append(
            progress.checkpoint.once(partial(cross_validated, setting, fit, penalty, progress))
        )
        # Graphs without edges differ by rounding; the path is not over before it has begun.
        with_edges = [v for v, p in zip(values, points, strict=True) if num_edges(p)]
        is_over = _is_lost(with_edges, problem.clusters)
        if is_over and not (setting.kind is PenaltyKind.ADAPTIVE and strength > _ALWAYS_REACHED):
            break
    return _Path(setting.kind, strengths, values, points, has_converged, problem.clusters)


def _is_lost(values: Sequence[Tensor], clusters: Tensor | None = None) -> bool:
    """Return whether the last value of a path is too far below its best to go on."""
    if not values:
        return False
    best = max(values, key=lambda value: float(value.sum()))
    gap, error = mean_and_error(best - values[-1], clusters)
    falls = has_fallen([float(value.sum()) for value in values], _FALLS)
    return gap > (_LOST_AFTER_FALLS if falls else _LOST) * error

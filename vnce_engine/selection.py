"""Choosing the linear term and the penalty's strength by rows held out of the fit."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor

from vnce_engine.choice import PenaltyChoice, num_edges
from vnce_engine.penalty import Penalty, PenaltyKind
from vnce_engine.prepared import RowSample, RowSampleT
from vnce_engine.problem import num_parameters
from vnce_engine.progress import Progress
from vnce_engine.result import FitStatus, LinearEvidence, PenaltyStep
from vnce_engine.setting import Setting

# At this strength the linear term is judged, before the strength is known; and at this one where
# there are as many parameters as rows: weaker penalties overfit there and hid a true linear term.
_TRIAL_STRENGTH = 0.3
_WIDE_TRIAL_STRENGTH = 1.0
# A fit with a linear term takes longer to settle; cut short it would lose to the one without.
_TRIAL_CYCLES = 20
# Share of rows at either end whose gains are drawn in to the nearest of the others.
_WINSORISED_SHARE = 0.05
# A choice must gain this many standard errors over the simpler one, and h this many.
_STANDARD_ERRORS = 1.5
_LINEAR_STANDARD_ERRORS = 1.35
# Of the three folds this many are held out in turn; the third would add little but time.
_HELD_OUT_FOLDS = 2
# The path ends after this many falls in a row of the held-out objective, or where that is no longer
# within `_STANDARD_ERRORS` of the best.
_FALLS = 2
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


def choose_linear(setting: Setting[RowSampleT], progress: Progress) -> tuple[str, LinearEvidence]:
    """Fit with and without h to two folds; keep h if the third gains more than 1.35 SE by it.

    A fit that has not settled stands back where the other one has. The gain is a winsorised mean
    over rows: on raw tables with heavy tails, the loss of one extreme row may exceed that of all
    others together, and neither model describes it.
    """
    problem = setting.problem
    held_out = problem.folds[0]
    training = problem.without(0)
    values, settled = {}, []
    for position, linear in enumerate(("zero", "free")):
        progress.enter_part(position / 2, (position + 1) / 2)
        trial = replace(setting, linear=linear)
        cycles = trial.cycles(trial.start(), progress)
        penalty = _trial_penalty(trial, training.num_rows)
        status = cycles.run(training, penalty, trial.region(), _TOLERANCE, _TRIAL_CYCLES)
        if status is FitStatus.CONVERGED:
            settled.append(linear)
        values[linear] = progress.journal.value(
            partial(held_out.held_out_objective, cycles.augmented, problem.num_rows)
        )
    gain, standard_error = _winsorised_mean(values["free"] - values["zero"], held_out)
    rule = (
        f"free if the gain, its outer {_WINSORISED_SHARE:.0%} of rows on either side drawn in, "
        f"exceeds {_LINEAR_STANDARD_ERRORS:g} standard errors"
    )
    choice = "free" if gain > _LINEAR_STANDARD_ERRORS * standard_error else "zero"
    if len(settled) == 1:
        (choice,) = settled
        rule += f"; but only the fit with {choice} had settled, and it was taken"
    return choice, LinearEvidence(gain, standard_error, rule, tuple(settled))


def choose_by_held_out_rows(
    setting: Setting[RowSampleT], strengths: Sequence[float], progress: Progress
) -> PenaltyChoice:
    """Follow the path from strong to weak penalties; return the strongest that is good enough.

    That is the largest strength whose held-out objective is within 1.5 standard errors (of the
    row-by-row difference) of the best. Folds, noise and uniforms are the same for all strengths.
    """
    problem = setting.problem
    folds = range(_HELD_OUT_FOLDS)
    held_out = [problem.folds[fold] for fold in folds]
    fits = [setting.cycles(setting.start(), progress) for _ in folds]
    progress.journal.watch(fits)
    values: list[Tensor] = []
    points: list[Tensor] = []
    has_settled = False
    for position, strength in enumerate(strengths):
        total = problem.scale.new_zeros(problem.num_rows)
        statuses = set()
        for fold in folds:
            part = position * len(folds) + fold
            num_parts = len(strengths) * len(folds)
            progress.enter_part(part / num_parts, (part + 1) / num_parts)
            training = problem.without(fold)
            penalty = setting.penalty(strength, training.num_rows)
            statuses.add(
                fits[fold].run(training, penalty, setting.region(), _TOLERANCE, _MAX_CYCLES)
            )
            total += progress.journal.value(
                partial(held_out[fold].held_out_objective, fits[fold].augmented, problem.num_rows)
            )
        if FitStatus.NON_FINITE in statuses:
            total.fill_(-math.inf)  # of an estimate that is none
        has_settled |= statuses == {FitStatus.CONVERGED}
        values.append(total)
        points.append(fits[0].augmented)
        if FitStatus.NON_FINITE in statuses:
            break
        # Graphs without edges differ by rounding; the path is not over before it has begun.
        with_edges = [v for v, p in zip(values, points, strict=True) if num_edges(p)]
        if _has_fallen(with_edges) or _has_lost(with_edges, held_out):
            break
    path, chosen = _path(strengths, values, points, held_out)
    return PenaltyChoice(strengths[chosen], path, points[chosen], is_settled=has_settled)


def _has_fallen(values: Sequence[Tensor]) -> bool:
    """Return whether the last values of the path fell, one after the other."""
    recent = [float(value.sum()) for value in values[-_FALLS - 1 :]]
    return len(recent) > _FALLS and all(b < a for a, b in pairwise(recent))


def _has_lost(values: Sequence[Tensor], held_out: Sequence[RowSample]) -> bool:
    """Return whether the last value of the path is too far below its best to be chosen.

    In 52 paths followed to their end none rose to a new best after that.
    """
    if not values:
        return False
    best = max(values, key=lambda value: float(value.sum()))
    gap, error = _mean_and_error(best - values[-1], held_out)
    return gap > _STANDARD_ERRORS * error


def _path(
    strengths: Sequence[float],
    values: Sequence[Tensor],
    points: Sequence[Tensor],
    held_out: Sequence[RowSample],
) -> tuple[tuple[PenaltyStep, ...], int]:
    best = max(range(len(values)), key=lambda i: float(values[i].sum()))
    gaps = [_mean_and_error(values[best] - value, held_out) for value in values]
    # Graphs without edges differ by what their fits have left; the strongest serves them all.
    is_empty = num_edges(points[best]) == 0
    good_enough = (
        i for i, (gap, error) in enumerate(gaps) if is_empty or gap <= _STANDARD_ERRORS * error
    )
    # Objectives that are not finite cannot be compared: the strongest is the safest.
    chosen = next(good_enough, 0)
    num_rows = sum(fold.num_rows for fold in held_out)
    steps = tuple(
        PenaltyStep(
            strength=strengths[i],
            criterion=float(value.sum()) / num_rows,
            standard_error=gaps[i][1],
            num_edges=num_edges(points[i]),
            chosen=i == chosen,
        )
        for i, value in enumerate(values)
    )
    return steps, chosen


def _winsorised_mean(differences: Tensor, held_out: RowSample) -> tuple[float, float]:
    """Return the mean over held-out rows, the outer ones drawn in, and its standard error.

    Rows drawn in say less than as many others: the standard deviation of all, over the root of
    their number, falls short of the error. Source: Dixon and Tukey (1968), "Approximate behavior of
    the distribution of Winsorized t", Technometrics 10.
    """
    chosen = differences[held_out.data_rows()]
    levels = chosen.new_tensor([_WINSORISED_SHARE, 1 - _WINSORISED_SHARE])
    low, high = torch.quantile(chosen, levels)
    mean, error = _mean_and_error(differences.clamp(low, high), [held_out])
    return mean, error / (1 - 2 * _WINSORISED_SHARE)


def _mean_and_error(differences: Tensor, held_out: Sequence[RowSample]) -> tuple[float, float]:
    """Return the mean over held-out rows of row-wise differences, and its standard error."""
    rows = torch.cat([fold.data_rows() for fold in held_out])
    chosen = differences[rows]
    return float(chosen.mean()), float(chosen.std() / math.sqrt(len(rows)))

"""The strengths among which a penalty is chosen."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import assert_never

import torch

from vnce_engine.contrastive.prepared import RowSampleT
from vnce_engine.distributions.quadratic import num_parameters
from vnce_engine.penalties.penalty import REFERENCE_ROWS, PenaltyKind, weakest_safe_strength
from vnce_engine.runtime.progress import Progress
from vnce_engine.selection.cross_validation import MOST_PARAMETERS
from vnce_engine.selection.setting import Setting

# From strong to weak, about 1.8-fold steps; for penalties that leave no exact zeros. Mostly a path
# ends before .1; strongly dependent columns want the weakest. For a longer table it starts at a
# strength as many times as strong: what removes the traces that noise leaves of absent interactions
# has to keep up with the weight of the rows.
_STRENGTHS = (3.0, 1.7, 1.0, 0.55, 0.3, 0.17, 0.1, 0.055, 0.03, 0.017, 0.01)
# Of a table with more parameters than rows, for which no matrix is formed: Newton steps from fits
# at weaker strengths are cut short, and held-out rows then prefer what fits all rows (rings of 44
# columns, 150 rows: chosen .055, with an error of K of .51 where .3 has .16).
_WEAKEST_OF_WIDE = 0.3
# A centred ridge's held-out objective hardly varies with its strength; from stronger ones edges
# were ranked worse (hubs with 30 % missing: AUC .78 at 3, .76 at 10).
_CENTRED_STRENGTHS = (3.0, 1.7, 1.0)
# An L1 path starts where the last interaction goes, and ends at this share of it over the root of
# the number of rows, as the noise in slopes falls; it never ends before a tenth.
_L1_SHARE = 1.6
_L1_LARGEST_SHARE = 0.1
_L1_STEPS = 12
# The fit of independent columns, whose slopes say where the path starts, is followed this far.
_TOLERANCE = 1e-3
_MAX_CYCLES = 30
# What it takes of the progress of choosing a penalty.
_PROGRESS = 0.02
_MARGIN = 1.02


def strengths(setting: Setting[RowSampleT], progress: Progress) -> tuple[float, ...]:
    """Return the grid of a path, from strong to weak."""
    match setting.kind:
        case PenaltyKind.L1:
            return _l1_strengths(setting, progress)
        case PenaltyKind.CENTRED_RIDGE:
            return _CENTRED_STRENGTHS
        case PenaltyKind.ADAPTIVE | PenaltyKind.RIDGE:
            return _stretched(_safe(_STRENGTHS, setting), setting.problem.num_rows)
        case _:
            assert_never(setting.kind)


def _stretched(grid: Sequence[float], num_rows: int) -> tuple[float, ...]:
    """Return the grid with stronger ones before it, by its own first step, for a longer table."""
    longer = list(grid)
    while longer[0] * REFERENCE_ROWS < grid[0] * num_rows:
        longer.insert(0, longer[0] * grid[0] / grid[1])
    return tuple(longer)


def _safe(grid: Sequence[float], setting: Setting[RowSampleT]) -> tuple[float, ...]:
    """Return the strengths that keep a fit with as many parameters as rows from running away."""
    if num_parameters(setting.problem.num_columns) < setting.problem.num_rows:
        return tuple(grid)
    weakest = weakest_safe_strength(setting.kind)
    is_wide = num_parameters(setting.problem.num_columns) > MOST_PARAMETERS
    if is_wide and setting.kind is PenaltyKind.ADAPTIVE:
        weakest = _WEAKEST_OF_WIDE
    return tuple(strength for strength in grid if strength >= weakest) or (weakest,)


def _l1_strengths(setting: Setting[RowSampleT], progress: Progress) -> tuple[float, ...]:
    progress.enter_part(0.0, _PROGRESS)
    strongest = progress.checkpoint.once(partial(strongest_l1, setting, progress))
    problem = setting.problem
    share = min(_L1_LARGEST_SHARE, _L1_SHARE / math.sqrt(problem.num_rows))
    grid = [strongest * share ** (step / (_L1_STEPS - 1)) for step in range(_L1_STEPS)]
    return _safe(grid, setting)


def strongest_l1(setting: Setting[RowSampleT], progress: Progress) -> float:
    """Return a strength that, but for the tolerance of fits, just leaves no interaction.

    That is the steepest slope of the objective in any kappa_ij at the best model of independent
    columns, and a little more.
    """
    problem, sample = setting.problem, setting.problem.sample
    num_columns = problem.num_columns
    no_edges = problem.scale.new_zeros(num_columns, num_columns, dtype=torch.bool)
    # Any strength will do: without interactions it only switches the diagonal's part on.
    penalty = setting.penalty(1.0, sample.num_rows)
    independent = setting.cycles(setting.start(), progress)
    independent.run(sample, penalty, setting.constraints(no_edges), _TOLERANCE, _MAX_CYCLES)
    assert independent.point is not None
    surrogate = replace(
        independent.point.surrogate,
        penalty=setting.penalty(None, sample.num_rows),
        constraints=setting.constraints(),
    )
    slopes = surrogate.at(independent.augmented, progress).gradient[:-1, :-1]
    root = problem.inverse_k0(has_linear=setting.has_linear).sqrt()
    # A pair has two entries.
    steepest = 2 * (slopes / torch.outer(root, root)).fill_diagonal_(0.0).abs().max()
    return _MARGIN * float(steepest) * problem.num_rows / REFERENCE_ROWS

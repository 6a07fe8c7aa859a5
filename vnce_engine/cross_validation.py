"""The objective of every row under an estimate that has not seen it, from one fit of all rows.

The rows are dealt to folds. The estimate without a fold is one step of Newton's method from that of
all rows, on the objective of the others: far cheaper than a fit, and near it, because a tenth of
the rows moves the estimate by little. So all rows are held out once, at about the price of a fit.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from vnce_engine.information import to_matrix, to_slope, upper_triangle
from vnce_engine.newton import newton_step
from vnce_engine.penalty import Penalty
from vnce_engine.prepared import Fit, RowSampleT
from vnce_engine.progress import Progress
from vnce_engine.region import Region
from vnce_engine.setting import Setting
from vnce_engine.surface import Surface

NUM_FOLDS = 10
# With more parameters, the entries of A, Newton's equations are solved without a matrix, which
# takes longer, and there are fewer folds.
_MOST_PARAMETERS = 1_000
_NUM_WIDE_FOLDS = 3
_MAX_HALVINGS = 30


def cross_validated(
    setting: Setting[RowSampleT], fit: Fit[RowSampleT], penalty: Penalty, progress: Progress
) -> Tensor:
    """Return each row's share of the objective (n,), out of sample.

    `fit` is that of all rows under the setting and `penalty`, whose strength in the folds is worth
    as many rows. -inf where the fit has no finite objective.
    """
    problem, augmented = setting.problem, fit.augmented
    size = len(augmented)
    is_small = size * (size + 1) // 2 <= _MOST_PARAMETERS
    num_folds = min(NUM_FOLDS if is_small else _NUM_WIDE_FOLDS, problem.num_rows)
    # The rows are in an order of their contents, so that each fold has rows of all kinds.
    folds = torch.arange(problem.num_rows, device=augmented.device) % num_folds
    # A fit that was taken from a checkpoint has not drawn them.
    sample = problem.sample.completed(augmented)
    parts = [sample.select(folds == fold) for fold in range(num_folds)]
    if is_small:
        without = _one_step_each(setting, fit, parts, penalty, progress)
    else:
        without = [
            _one_step(setting, fit, folds != fold, penalty, progress) for fold in range(num_folds)
        ]
    total = augmented.new_zeros(problem.num_rows)
    for part, moved in zip(parts, without, strict=True):
        total += part.objective_by_row(moved, problem.num_rows)
    return torch.nan_to_num(total, nan=-torch.inf)


def _one_step(
    setting: Setting[RowSampleT],
    fit: Fit[RowSampleT],
    is_kept: Tensor,
    penalty: Penalty,
    progress: Progress,
) -> Tensor:
    """Return the estimate of the rows that are kept, bool (n,), by a step without a matrix."""
    sample = setting.problem.sample.select(is_kept)
    lighter = setting.penalty(penalty.strength, sample.num_rows)
    point = Surface(sample, lighter, setting.region()).at(fit.augmented, progress)
    return newton_step(point, progress).point.augmented


def _one_step_each(
    setting: Setting[RowSampleT],
    fit: Fit[RowSampleT],
    parts: Sequence[RowSampleT],
    penalty: Penalty,
    progress: Progress,
) -> list[Tensor]:
    """Return the estimate without each part, by a step whose equations are solved as a matrix."""
    augmented, region = fit.augmented, setting.region()
    point = Surface(setting.problem.sample, penalty, region).at(augmented, progress)
    free = point.is_free()[upper_triangle(len(augmented), augmented.device)].nonzero().flatten()
    gradients = [part.terms(augmented, progress)[1] for part in parts]
    curvatures = [part.information(augmented) for part in parts]
    gradient, curvature = torch.stack(gradients).sum(dim=0), torch.stack(curvatures).sum(dim=0)
    # In units of all rows: a strength is worth the same number of rows in tables of any size.
    num_rows, precision = penalty.num_rows, augmented[:-1, :-1]
    penalty_slope = num_rows * pad(penalty.gradient(precision), (0, 1, 0, 1))
    penalty_matrix = num_rows * penalty.curvature(precision).matrix()
    moved = []
    for own_gradient, own_curvature in zip(gradients, curvatures, strict=True):
        slope = to_slope(gradient - own_gradient - penalty_slope)
        step = _solution(curvature - own_curvature + penalty_matrix, slope, free)
        moved.append(_moved(augmented, to_matrix(step, len(augmented)), region))
    return moved


def _solution(matrix: Tensor, slope: Tensor, free: Tensor) -> Tensor:
    """Return the step (p,) that solves the equations of the `free` entries, NaN if none does."""
    factor, info = torch.linalg.cholesky_ex(matrix[free][:, free])
    step = torch.zeros_like(slope)
    step[free] = torch.cholesky_solve(slope[free].unsqueeze(1), factor)[:, 0]
    return step if info == 0 else torch.full_like(step, torch.nan)


def _moved(augmented: Tensor, step: Tensor, region: Region) -> Tensor:
    """Return the end of a step, or of the first of ever shorter ones that is in the region.

    NaN where the step is.
    """
    if step.isnan().any():
        return torch.full_like(augmented, torch.nan)
    for _ in range(_MAX_HALVINGS):
        moved = region.project(augmented + step)
        if region.contains(moved):
            return moved
        step = 0.5 * step
    return augmented

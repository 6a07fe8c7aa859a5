"""The objective of every row under an estimate that has not seen it, from one fit of all rows.

The data rows are dealt to folds. The estimate without a fold is one step of Newton's method from
that of all rows, on the objective of the others: far cheaper than a fit, and near it, because a
tenth of the rows moves the estimate by little. So all rows are held out once, at about the price of
a fit.

Noise rows stay. Each estimate is judged on all of them, so that the choice depends less on their
draws, and what the estimates owe to having seen them is taken off by its expectation: the trace of
Newton's inverse matrix times the sum of squares of the noise rows' scores, as in the criterion of
Takeuchi. Source: Stone (1977), "An asymptotic equivalence of choice of model by cross-validation
and Akaike's criterion", J. R. Stat. Soc. B 39.
"""

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
    problem, size = setting.problem, len(fit.augmented)
    is_small = size * (size + 1) // 2 <= _MOST_PARAMETERS
    num_folds = min(NUM_FOLDS if is_small else _NUM_WIDE_FOLDS, problem.num_rows)
    # The rows are in an order of their contents, so that each fold has rows of all kinds.
    folds = torch.arange(problem.num_rows, device=fit.augmented.device) % num_folds
    # A fit that was taken from a checkpoint has not drawn them.
    sample = problem.sample.completed(fit.augmented)
    of_rows = _by_matrices if is_small else _without_matrices
    held_out = of_rows(setting, fit.augmented, sample, folds, penalty, progress)
    return torch.nan_to_num(held_out, nan=-torch.inf)


def _without_matrices(
    setting: Setting[RowSampleT],
    augmented: Tensor,
    sample: RowSampleT,
    folds: Tensor,
    penalty: Penalty,
    progress: Progress,
) -> Tensor:
    """Return each row's share (n,) where a matrix is too large: noise rows are held out too."""
    total = augmented.new_zeros(len(folds))
    for fold in folds.unique():
        others = sample.select(folds != fold)
        lighter = setting.penalty(penalty.strength, others.num_rows)
        point = Surface(others, lighter, setting.region()).at(augmented, progress)
        moved = newton_step(point, progress).point.augmented
        total += sample.select(folds == fold).objective_by_row(moved, len(folds))
    return total


def _by_matrices(
    setting: Setting[RowSampleT],
    augmented: Tensor,
    sample: RowSampleT,
    folds: Tensor,
    penalty: Penalty,
    progress: Progress,
) -> Tensor:
    """Return each row's share (n,), the equations of every fold's step solved as a matrix."""
    region, size, num_rows = setting.region(), len(augmented), len(folds)
    point = Surface(sample, penalty, region).at(augmented, progress)
    free = point.is_free()[upper_triangle(size, augmented.device)].nonzero().flatten()
    data = [sample.data_part(folds == fold) for fold in folds.unique()]
    slopes = [to_slope(part.terms(augmented, progress)[1]) for part in data]
    matrices = [part.information(augmented) for part in data]
    noise = sample.noise_part()
    noise_slope = to_slope(noise.terms(augmented, progress)[1])
    noise_matrix = noise.information(augmented)
    # In units of all rows: a strength is worth the same number of rows in tables of any size.
    precision = augmented[:-1, :-1]
    penalty_slope = penalty.num_rows * to_slope(pad(penalty.gradient(precision), (0, 1, 0, 1)))
    slope = torch.stack(slopes).sum(dim=0) + noise_slope - penalty_slope
    matrix = torch.stack(matrices).sum(dim=0) + noise_matrix
    matrix += penalty.num_rows * penalty.curvature(precision).matrix()

    total = augmented.new_zeros(num_rows)
    for part, own_slope, own_matrix in zip(data, slopes, matrices, strict=True):
        # As many noise rows a data row as ever: theirs count for less.
        share = part.num_rows / num_rows
        step = _solution(
            matrix - own_matrix - share * noise_matrix,
            (slope - own_slope - share * noise_slope).unsqueeze(1),
            free,
        )
        moved = _moved(augmented, to_matrix(step[:, 0], size), region)
        total += part.objective_by_row(moved, num_rows)
        total[part.data_rows()] += noise.objective_by_row(moved, num_rows).sum() / num_rows
    optimism = _solution(matrix, sample.noise_scores(augmented), free).trace()
    return total - optimism / num_rows


def _solution(matrix: Tensor, slopes: Tensor, free: Tensor) -> Tensor:
    """Return the steps (p, k) that solve the equations of the `free` entries, NaN if none do."""
    factor, info = torch.linalg.cholesky_ex(matrix[free][:, free])
    steps = torch.zeros_like(slopes)
    steps[free] = torch.cholesky_solve(slopes[free], factor)
    return steps if info == 0 else torch.full_like(steps, torch.nan)


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

"""The objective of every row under an estimate that has not seen it, from one fit of all rows.

The data rows are dealt to folds, those of a cluster to the same one. The estimate without a fold
is one step of Newton's method from that of all rows, on the objective of the others: far cheaper
than a fit, and near it, because a tenth of the rows moves the estimate by little. So all rows are
held out once, at about the price of a fit.

Noise rows stay. Each estimate is judged on all of them, so that the choice depends less on their
draws, and what the estimates owe to having seen them is taken off by its expectation: the trace of
Newton's inverse matrix times the sum of squares of the noise rows' scores, as in the criterion of
Takeuchi. Source: Stone (1977), "An asymptotic equivalence of choice of model by cross-validation
and Akaike's criterion", J. R. Stat. Soc. B 39.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Generic

import torch
from torch import Tensor
from torch.nn.functional import pad

from vnce_engine.contrastive.prepared import Fit, RowSampleT
from vnce_engine.distributions.information import to_matrix, to_slope, upper_triangle
from vnce_engine.distributions.quadratic import num_parameters
from vnce_engine.optim.constraints import Constraints
from vnce_engine.optim.newton import MAX_HALVINGS, newton_step
from vnce_engine.optim.surrogate import Surrogate
from vnce_engine.penalties.penalty import Penalty
from vnce_engine.runtime.progress import Progress
from vnce_engine.selection.setting import Setting

NUM_FOLDS = 10
# With more parameters, the entries of A, Newton's equations are solved without a matrix, which
# takes longer, and there are fewer folds.
MOST_PARAMETERS = 1_000
_NUM_WIDE_FOLDS = 3


def cross_validated(
    setting: Setting[RowSampleT], fit: Fit[RowSampleT], penalty: Penalty, progress: Progress
) -> Tensor:
    """Return each row's share of the objective (n,), out of sample.

    `fit` is that of all rows under the setting and `penalty`, whose strength in the folds is worth
    as many rows. -inf where the fit has no finite objective. The problem's sample has new draws
    afterwards, those under the estimate.
    """
    return _Folds(setting, progress).held_out(fit.augmented, penalty)[0]


def gain_of_relaxing(
    setting: Setting[RowSampleT],
    plain: Tensor,
    relaxed: Tensor,
    penalty: Penalty,
    progress: Progress,
) -> Tensor:
    """Return by how much each row's share (n,) is better where the adaptive `penalty` is relaxed.

    `plain` is the estimate of all rows under the penalty, `relaxed` that under the penalty relaxed
    at `plain`. Without a fold, it is relaxed at the estimate without that fold: weights that had
    seen the rows held out would know which interactions those have. Noise rows are held out here
    too, as weights would owe something to them that the trace does not know of.
    """
    folds = _Folds(setting, progress, with_noise=True)
    before, without = folds.held_out(plain, penalty)
    of_folds = [penalty.relaxed(estimate[:-1, :-1]) for estimate in without]
    return folds.held_out(relaxed, penalty.relaxed(plain[:-1, :-1]), of_folds)[0] - before


class _Folds(Generic[RowSampleT]):
    """The data rows of a setting's problem, dealt to folds, `with_noise` rows of theirs or not.

    Where a matrix is too large, always with them.
    """

    def __init__(
        self, setting: Setting[RowSampleT], progress: Progress, *, with_noise: bool = False
    ) -> None:
        self._setting, self._progress, self._with_noise = setting, progress, with_noise
        problem = setting.problem
        self._is_small = num_parameters(problem.num_columns) <= MOST_PARAMETERS
        most = NUM_FOLDS if self._is_small else _NUM_WIDE_FOLDS
        self.number = min(most, problem.num_independent)
        # The rows are in an order of their contents, so that each fold has rows of all kinds, and
        # clusters in that of their first rows.
        places = torch.arange(problem.num_rows, device=problem.scale.device)
        of_row = places if problem.clusters is None else problem.clusters
        self._of_row = of_row % self.number

    def held_out(
        self, augmented: Tensor, penalty: Penalty, of_folds: Sequence[Penalty] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        """Return each row's share (n,), and the estimate without each fold.

        `augmented` is the estimate under `penalty`; `of_folds` are the penalties without each fold,
        where they are others.
        """
        # A fit that was taken from a checkpoint has not drawn them.
        sample = self._setting.problem.sample
        sample.redraw(augmented)
        of_rows = self._by_matrices if self._is_small else self._without_matrices
        shares, without = of_rows(augmented, sample, penalty, of_folds)
        return torch.nan_to_num(shares, nan=-torch.inf), without

    def _without_matrices(
        self, augmented: Tensor, sample: RowSampleT, penalty: Penalty, of_folds: Sequence[Penalty]
    ) -> tuple[Tensor, list[Tensor]]:
        """Return what `held_out` does where a matrix is too large."""
        total, without = augmented.new_zeros(len(self._of_row)), []
        for fold, of_fold in enumerate(of_folds or [penalty] * self.number):
            others = sample.select(self._of_row != fold)
            lighter = replace(of_fold, num_rows=others.num_rows)
            point = Surrogate(others, lighter, self._setting.constraints()).at(
                augmented, self._progress
            )
            moved = newton_step(point, self._progress).point.augmented
            part = sample.select(self._of_row == fold)
            total += part.objective_by_row(moved, len(total))
            without.append(moved)
        return total, without

    def _by_matrices(
        self, augmented: Tensor, sample: RowSampleT, penalty: Penalty, of_folds: Sequence[Penalty]
    ) -> tuple[Tensor, list[Tensor]]:
        """Return what `held_out` does, the equations of every fold's step solved as a matrix."""
        progress, constraints = self._progress, self._setting.constraints()
        num_rows, precision = len(self._of_row), augmented[:-1, :-1]
        point = Surrogate(sample, penalty, constraints).at(augmented, progress)
        free = point.is_free()[upper_triangle(len(augmented), augmented.device)]
        free = free.nonzero().flatten()
        part_of = sample.select if self._with_noise else sample.data_part
        parts = [part_of(self._of_row == fold) for fold in range(self.number)]
        slopes = [to_slope(part.terms(augmented, progress)[1]) for part in parts]
        matrices = [part.information(augmented) for part in parts]
        slope, matrix = torch.stack(slopes).sum(dim=0), torch.stack(matrices).sum(dim=0)
        staying = None if self._with_noise else sample.noise_part()
        if staying is not None:
            # As many noise rows a data row as ever: a fold's share of theirs counts no more.
            noise_slope = to_slope(staying.terms(augmented, progress)[1])
            noise_matrix = staying.information(augmented)
            slope, matrix = slope + noise_slope, matrix + noise_matrix
            parts_of_rows = [part.num_rows / num_rows for part in parts]
            slopes = [x + f * noise_slope for x, f in zip(slopes, parts_of_rows, strict=True)]
            matrices = [x + f * noise_matrix for x, f in zip(matrices, parts_of_rows, strict=True)]
        own_penalty = _of_all_rows(penalty, precision)
        penalties = [_of_all_rows(p, precision) for p in of_folds] or [own_penalty] * self.number

        total, without = augmented.new_zeros(num_rows), []
        for fold, part in enumerate(parts):
            penalty_slope, penalty_matrix = penalties[fold]
            step = _solution(
                matrix - matrices[fold] + penalty_matrix,
                (slope - slopes[fold] - penalty_slope).unsqueeze(1),
                free,
            )
            moved, share = _moved(augmented, to_matrix(step[:, 0], len(augmented)), constraints)
            shares = _objective(part, staying, moved, num_rows)
            if share < 1:
                change = shares - _objective(part, staying, augmented, num_rows)
                # The objective is concave: where it falls it is lower still at the whole step's
                # end. Where it rises, as from a fit that has not settled, no more is known.
                if change.sum() < 0:
                    shares = shares + (1 / share - 1) * change
            total += shares
            without.append(moved)
        if staying is not None:
            scores = sample.noise_scores(augmented)
            total -= _solution(matrix + own_penalty[1], scores, free).trace() / num_rows
        return total, without


def _objective(
    part: RowSampleT, staying: RowSampleT | None, augmented: Tensor, num_rows: int
) -> Tensor:
    """Return the shares (num_rows,) of the part's rows, with the mean of the noise that stays."""
    shares = part.objective_by_row(augmented, num_rows)
    if staying is not None:
        shares[part.data_rows()] += staying.objective_by_row(augmented, num_rows).sum() / num_rows
    return shares


def _of_all_rows(penalty: Penalty, precision: Tensor) -> tuple[Tensor, Tensor]:
    """Return the penalty's slope (p,) and curvature (p, p), in units of a sum over all rows.

    They are no less without a fold: a strength is worth the same number of rows in any table.
    """
    slope = to_slope(pad(penalty.gradient(precision), (0, 1, 0, 1)))
    return penalty.num_rows * slope, penalty.num_rows * penalty.curvature(precision).matrix()


def _solution(matrix: Tensor, slopes: Tensor, free: Tensor) -> Tensor:
    """Return the steps (p, k) that solve the equations of the `free` entries, NaN if none do."""
    factor, info = torch.linalg.cholesky_ex(matrix[free][:, free])
    steps = torch.zeros_like(slopes)
    steps[free] = torch.cholesky_solve(slopes[free], factor)
    return steps if info == 0 else torch.full_like(steps, torch.nan)


def _moved(augmented: Tensor, step: Tensor, constraints: Constraints) -> tuple[Tensor, float]:
    """Return the end of a step, or of the first of ever shorter feasible ones, and its share.

    NaN where the step is.
    """
    if step.isnan().any():
        return torch.full_like(augmented, torch.nan), 1.0
    share = 1.0
    for _ in range(MAX_HALVINGS):
        moved = constraints.project(augmented + share * step)
        if constraints.contains(moved):
            return moved, share
        share *= 0.5
    return augmented, 1.0

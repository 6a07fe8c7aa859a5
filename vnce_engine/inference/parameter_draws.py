"""Draws of theta from about its posterior, by which completed tables differ in their parameters.

The penalty is minus the logarithm of a prior density, over n, and an estimate t the mode of its
posterior, which about there is normal: N(t, (J + R)⁻¹ / n), with J the information of a row
(`information.py`) and R the penalty's curvature. Where rows are in clusters the likelihood knows
more than they do, and its spread gives way to that of their scores, V (`uncertainty.py`):
N(t, (J + R)⁻¹ (V + R) (J + R)⁻¹ / n), the same where V is J. Entries of theta that are zero, by a
graph, an L1 penalty or because h is to be, stay zero.

Where rows are few K would be indefinite in many draws. With D what a draw adds to K it becomes

    K exp(K⁻¹ (D - E)) = K + D + ½ D K⁻¹ D - E + ...,

symmetric and positive definite like K, E the mean of ½ D K⁻¹ D over the draws, so that theirs is
about K; and h = K mu with mu moved as D and h's own draw move it to first order. Where D is small
beside K, that is the draw itself.
"""

import torch
from torch import Tensor

from vnce_engine.distributions.information import to_matrix, upper_triangle
from vnce_engine.inference.uncertainty import UnpenalisedStep
from vnce_engine.penalties.penalty import Penalty

# As many tables can be completed by parameters of their own.
NUM_DRAWS = 100
# Share of J + R that is added to R, which may have no inverse, where N(0, R) is drawn from.
_LITTLE = 1e-6


def parameter_draws(
    start: UnpenalisedStep, penalty: Penalty, generator: torch.Generator
) -> list[Tensor]:
    """Return A (d + 1, d + 1) at draws of theta, each with the c of the estimate.

    The step starts at the estimate that maximises the objective under the `penalty`. Empty where
    J + R has no inverse.
    """
    augmented, size = start.augmented, len(start.augmented)
    theta = augmented[upper_triangle(size, augmented.device)]
    is_moved = theta[start.free] != 0
    moved = start.free[is_moved]
    # Of a hundred columns each of these matrices has 212 MB.
    curvature = penalty.curvature(augmented[:-1, :-1]).matrix()[moved.unsqueeze(1), moved]
    lines = start.factor[is_moved]
    information = curvature if start.clusters is None else curvature.clone()
    information.addmm_(lines, lines.mT)
    factor, info = torch.linalg.cholesky_ex(information)
    if info != 0:
        return []
    shape = (len(moved), NUM_DRAWS)
    normals = torch.randn(shape, dtype=theta.dtype, generator=generator).to(theta.device)
    if start.clusters is None:
        deviations = torch.linalg.solve_triangular(factor.mT, normals, upper=True)
    else:
        slopes = start.slope_draws(NUM_DRAWS, generator)[moved] / start.rows.num_rows**0.5
        of_prior = torch.linalg.cholesky(curvature.add_(information, alpha=_LITTLE))
        deviations = torch.cholesky_solve(slopes + of_prior @ normals, factor)
    changes = theta.new_zeros(NUM_DRAWS, len(theta))
    changes[:, moved] = deviations.mT / start.rows.num_rows**0.5
    matrices = [to_matrix(change, size) for change in changes]
    excess = _excess(augmented[:-1, :-1], torch.stack(matrices)[:, :-1, :-1])
    return [_moved(augmented, change, excess) for change in matrices]


def _excess(precision: Tensor, changes: Tensor) -> Tensor:
    """Return E (d, d) of changes (m, d, d) of K."""
    factor = torch.linalg.cholesky(precision)
    return 0.5 * (changes @ torch.cholesky_solve(changes, factor)).mean(dim=0)


def _moved(augmented: Tensor, change: Tensor, excess: Tensor) -> Tensor:
    """Return A changed in K and h by as much, to first order, its K definite as it was."""
    precision, linear = augmented[:-1, :-1], -augmented[:-1, -1:]
    factor = torch.linalg.cholesky(precision)
    relative = torch.cholesky_solve(change[:-1, :-1], factor)  # K⁻¹ D
    mean = torch.cholesky_solve(linear, factor)
    mean = mean - relative @ mean + torch.cholesky_solve(-change[:-1, -1:], factor)
    drawn = precision @ torch.linalg.matrix_exp(relative - torch.cholesky_solve(excess, factor))
    moved = augmented.clone()
    moved[:-1, :-1] = 0.5 * (drawn + drawn.mT)
    moved[:-1, -1:] = -moved[:-1, :-1] @ mean
    moved[-1, :-1] = moved[:-1, -1]
    return moved

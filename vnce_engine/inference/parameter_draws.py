"""Draws of theta from about its posterior, by which completed tables differ in their parameters.

The penalty is minus the logarithm of a prior density, over n, and an estimate t the mode of its
posterior, which about there is normal: N(t, (J + R)⁻¹ / n), with J the information of a row
(`information.py`) and R the penalty's curvature. Entries of theta that are zero, by a graph, an L1
penalty or because h is to be, stay zero.

Where rows are few K would be indefinite in many draws. With D what a draw adds to K it becomes

    K exp(K⁻¹ D) = K + D + ½ D K⁻¹ D + ...,

symmetric and positive definite like K, and h = K mu with mu moved as D and h's own draw move it to
first order; where D is small beside K, that is the draw itself. Without a penalty, from the end of
`UnpenalisedStep`, what is estimated from completed tables is nearer to the truth on average, but in
short tables cells are drawn far from it: see docs/imputation.md.
"""

import torch
from torch import Tensor

from vnce_engine.distributions.information import to_matrix, upper_triangle
from vnce_engine.inference.uncertainty import UnpenalisedStep
from vnce_engine.penalties.penalty import Penalty

# As many tables can be completed by parameters of their own.
NUM_DRAWS = 100


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
    curvature = penalty.curvature(augmented[:-1, :-1]).matrix()
    information = (start.factor @ start.factor.mT)[is_moved][:, is_moved]
    factor, info = torch.linalg.cholesky_ex(information + curvature[moved][:, moved])
    if info != 0:
        return []
    shape = (len(moved), NUM_DRAWS)
    normals = torch.randn(shape, dtype=theta.dtype, generator=generator).to(theta.device)
    deviations = torch.linalg.solve_triangular(factor.mT, normals, upper=True)
    changes = theta.new_zeros(NUM_DRAWS, len(theta))
    changes[:, moved] = deviations.mT / start.sample.num_rows**0.5
    return [_moved(augmented, to_matrix(change, size)) for change in changes]


def _moved(augmented: Tensor, change: Tensor) -> Tensor:
    """Return A changed in K and h by as much, to first order, its K definite as it was."""
    precision, linear = augmented[:-1, :-1], -augmented[:-1, -1:]
    factor = torch.linalg.cholesky(precision)
    relative = torch.cholesky_solve(change[:-1, :-1], factor)  # K⁻¹ D
    mean = torch.cholesky_solve(linear, factor)
    mean = mean - relative @ mean + torch.cholesky_solve(-change[:-1, -1:], factor)
    drawn = precision @ torch.linalg.matrix_exp(relative)
    moved = augmented.clone()
    moved[:-1, :-1] = 0.5 * (drawn + drawn.mT)
    moved[:-1, -1:] = -moved[:-1, :-1] @ mean
    moved[-1, :-1] = moved[:-1, -1]
    return moved

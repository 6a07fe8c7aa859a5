"""Where Newton's method leads under an L1 penalty, which has a kink wherever an interaction is 0.

Within an orthant, the signs of all K_ij given, the penalty is linear. An M-step takes its signs
from the present K, and at zero from the slope (the subgradient of least size), and looks for the
maximum of the quadratic model there: interactions that would cross zero are held at it, the
equations of the others solved anew, and those whose slope there points back inside let go again.
Cutting crossings off without solving anew took four times as many cycles.

What is set to zero takes h and c along, so that for rows measured from their mean K alone changes:
where columns lie many spreads from 0, it would otherwise shift the whole model.

Sources: Andrew and Gao (2007), "Scalable training of L1-regularized log-linear models", ICML, for
the orthants; Hintermueller, Ito and Kunisch (2002), "The primal-dual active set strategy as a
semismooth Newton method", SIAM J. Optim. 13, for holding and letting go.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from vnce_engine.optim.conjugate_gradients import solve
from vnce_engine.optim.surrogate import Curvature, Preconditioner, SurrogatePoint
from vnce_engine.runtime.progress import Progress

# Faces of the orthant that one M-step tries; the next one goes on from there.
_MAX_FACES = 8


def orthant_target(
    point: SurrogatePoint,
    curvature: Curvature,
    preconditioner: Preconditioner,
    progress: Progress,
) -> Tensor:
    """Return the best target (d + 1, d + 1) found; the way there starts uphill.

    `curvature` and `preconditioner` are those of all entries that may move.
    """
    whole = curvature.restricted(point.surrogate.constraints.estimated())
    signs = _signs(point)
    is_free = curvature.is_free
    best, largest_gain = _steepest(point, curvature, signs, preconditioner), 0.0
    for _ in range(_MAX_FACES):
        held = torch.where(curvature.is_free & ~is_free, -point.augmented, 0.0)
        held = preconditioner.about_centre(held)
        residual = point.gradient - whole.product(held, progress)
        face = curvature.restricted(is_free)
        inner = preconditioner.restricted(is_free)
        solved, _ = solve(residual * is_free, face, inner, progress)
        step = held + solved
        target = _within(point, point.augmented + step, signs, preconditioner)
        gain = _model_gain(point, target, whole, progress)
        if gain > largest_gain:
            best, largest_gain = target, gain
        residual = preconditioner.centred(point.gradient - whole.product(step, progress))
        stays = _has_sign(point.augmented + step, signs)
        returns = _has_sign(residual, signs)
        next_free = curvature.is_free & torch.where(is_free, stays, returns)
        if torch.equal(next_free, is_free):
            break
        is_free = next_free
    return best


def _signs(point: SurrogatePoint) -> Tensor:
    """Return the sign (d + 1, d + 1) of each interaction within the orthant, 0 elsewhere."""
    precision, slope = point.augmented[:-1, :-1], point.gradient[:-1, :-1]
    return pad(point.surrogate.penalty.orthant(precision, slope), (0, 1, 0, 1))


def _has_sign(values: Tensor, signs: Tensor) -> Tensor:
    """Return bool (d + 1, d + 1): False where the sign is another than the orthant's."""
    return (signs == 0) | (values.sign() == signs)


def _within(
    point: SurrogatePoint, augmented: Tensor, signs: Tensor, preconditioner: Preconditioner
) -> Tensor:
    """Return `augmented` back in the orthant and within the constraints, h and c going along."""
    inside = augmented.masked_fill(~_has_sign(augmented, signs), 0.0)
    cut = point.surrogate.constraints.project(inside) - augmented
    return augmented + preconditioner.about_centre(cut)


def _model_gain(
    point: SurrogatePoint, target: Tensor, curvature: Curvature, progress: Progress
) -> float:
    """Return the increase that the quadratic model predicts on the step to the target."""
    direction = target - point.augmented
    return float(
        (direction * (point.gradient - 0.5 * curvature.product(direction, progress))).sum()
    )


def _steepest(
    point: SurrogatePoint,
    curvature: Curvature,
    signs: Tensor,
    preconditioner: Preconditioner,
) -> Tensor:
    """Return where every free entry would go if it moved alone."""
    alone = torch.where(curvature.is_free, point.gradient / curvature.diagonal(), 0.0)
    return _within(point, point.augmented + alone, signs, preconditioner)

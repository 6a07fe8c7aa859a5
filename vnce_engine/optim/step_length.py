"""How long a step of Newton's method is, in the units in which a fit is judged to have settled."""

import math

import torch
from torch import Tensor

from vnce_engine.optim.newton import NewtonStep, is_rounding


def centred(step: Tensor, centre: Tensor) -> Tensor:
    """Return a step in A (d + 1, d + 1) for rows measured from `centre`.

    Where columns lie many spreads from 0, a small step in K moves h along by many times as much,
    and only the rest of h's step, which shifts the model, says how far the estimates have settled.
    """
    about = step.clone()
    about[:-1, -1] = about[-1, :-1] = step[:-1] @ centre
    return about


def length_in_standard_errors(step: NewtonStep) -> float:
    """Return the length of a step in standard errors of the parameters, in root mean square.

    The objective's curvature over all rows is the inverse of the parameters' covariance, to which
    it tends as nu grows, so that what the step promises over all rows is the sum of their squares.
    """
    surrogate = step.point.surrogate
    num_parameters = int(torch.triu(surrogate.constraints.estimated()).sum())
    return math.sqrt(step.predicted_increase * surrogate.sample.num_rows / num_parameters)


def scaled_change(step: Tensor, augmented: Tensor) -> float:
    """Return the largest entry of `step` in K and h, columns scaled to unit K_ii."""
    scaled = step * column_units(augmented)
    return float(scaled[:, :-1].abs().max())


def column_units(augmented: Tensor) -> Tensor:
    """Return the factors (d + 1, d + 1) that make every K_ii one, and leave c as it is."""
    root = augmented.diagonal().rsqrt()
    root[-1] = 1.0
    return torch.outer(root, root)


def share_done(first_ratio: float, ratio: float) -> float:
    """Return the share of the way, on a logarithmic scale, from the first ratio down to 1.

    Ratios say how many times as long a step is as the last one may be.
    """
    whole, left = math.log(max(first_ratio, 1)), math.log(max(ratio, 1))
    return 1 - left / whole if whole > 0 else 1.0


def leaves_rounding(step: NewtonStep) -> bool:
    """Return whether what is left promises no gain that could be told from rounding."""
    return is_rounding(float((step.remaining * step.point.gradient).sum()), step.point)

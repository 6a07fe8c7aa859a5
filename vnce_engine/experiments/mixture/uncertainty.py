"""Standard errors of M-estimates, and how far an estimate is from its objective's maximum."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

# A mean over rows that is part of an objective: takes parameters (p,), returns its rows (n,).
Rows = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class PluggedIn:
    """A number that an objective takes from the data beforehand, and does not maximise in."""

    value: Tensor
    """()"""
    influence: Tensor
    """(n,): by how much each row of the first part moves it, times n; their mean is 0"""


@dataclass(frozen=True)
class Neighbourhood:
    """An objective near an estimate of p parameters."""

    gradient: Tensor
    """(p,)"""
    standard_errors: Tensor | None
    """(p,); None where the objective is not concave, so that the estimate is no maximum."""
    largest_step: float | None
    """The step that Newton's method would still take, in standard errors: the largest of p."""


def neighbourhood(
    parts: Sequence[Rows], at: Tensor, plugged_in: PluggedIn | None = None
) -> Neighbourhood:
    """Look around `at` (p,) for an objective that is the sum of the means of independent `parts`.

    The covariance is the sandwich H⁻¹ V H⁻¹, with H the Hessian and V the variance of the gradient:
    each part adds the variance of its rows' gradients over their number. That holds for maximum
    likelihood, right model or not, and for noise-contrastive estimation, whose parts are data and
    noise. Source: van der Vaart (1998), Asymptotic Statistics, Theorem 5.23; for NCE Gutmann and
    Hyvärinen (2012), Theorem 3.

    With a number plugged in, parts take it after the parameters, (p + 1,), and the gradients of the
    first part's rows have what they move by it added (Newey and McFadden, 1994, Section 6).
    """
    num = len(at)
    if plugged_in is not None:
        at = torch.cat([at, plugged_in.value.reshape(1)])
    slopes = [_slopes(rows, at, num) for rows in parts]
    gradient = torch.stack([part.mean(dim=0) for part in slopes]).sum(dim=0)

    def objective(parameters: Tensor) -> Tensor:
        return torch.stack([rows(parameters).mean() for rows in parts]).sum()

    hessian = torch.autograd.functional.hessian(objective, at)
    curvature = -hessian[:num, :num]
    if not hessian.isfinite().all() or torch.linalg.eigvalsh(curvature)[0] <= 0:
        return Neighbourhood(gradient, None, None)
    if plugged_in is not None:
        slopes[0] = slopes[0] + torch.outer(plugged_in.influence, hessian[:num, num])
    variances = [torch.atleast_2d(torch.cov(part.T)) / len(part) for part in slopes]
    half = torch.linalg.solve(curvature, torch.stack(variances).sum(dim=0))
    errors = torch.linalg.solve(curvature, half.T).diagonal().sqrt()
    step = torch.linalg.solve(curvature, gradient)
    return Neighbourhood(gradient, errors, float((step / errors).abs().max()))


def _slopes(rows: Rows, at: Tensor, num: int) -> Tensor:
    """Return every row's gradient in the first `num` numbers, (n, num); by columns, a few."""
    basis = torch.eye(len(at), dtype=at.dtype)[:num]
    return torch.stack([torch.autograd.functional.jvp(rows, at, e)[1] for e in basis], dim=1)

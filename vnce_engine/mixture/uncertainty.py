"""Standard errors of M-estimates, and how far an estimate is from its objective's maximum."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

# A mean over rows that is part of an objective: takes parameters (p,), returns its rows (n,).
Rows = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Neighbourhood:
    """An objective near an estimate of p parameters."""

    gradient: Tensor
    """(p,)"""
    standard_errors: Tensor | None
    """(p,); None where the objective is not concave, so that the estimate is no maximum."""
    largest_step: float | None
    """The step that Newton's method would still take, in standard errors: the largest of p."""


def neighbourhood(parts: Sequence[Rows], at: Tensor) -> Neighbourhood:
    """Look around `at` (p,) for an objective that is the sum of the means of independent `parts`.

    The covariance is the sandwich H⁻¹ V H⁻¹, with H the Hessian and V the variance of the gradient:
    each part adds the variance of its rows' gradients over their number. That holds for maximum
    likelihood, right model or not, and for noise-contrastive estimation, whose parts are data and
    noise. Source: van der Vaart (1998), Asymptotic Statistics, Theorem 5.23; for NCE Gutmann and
    Hyvärinen (2012), Theorem 3.
    """
    slopes = [_slopes(rows, at) for rows in parts]
    gradient = torch.stack([part.mean(dim=0) for part in slopes]).sum(dim=0)

    def objective(parameters: Tensor) -> Tensor:
        return torch.stack([rows(parameters).mean() for rows in parts]).sum()

    curvature = -torch.autograd.functional.hessian(objective, at)
    if not curvature.isfinite().all() or torch.linalg.eigvalsh(curvature)[0] <= 0:
        return Neighbourhood(gradient, None, None)
    variances = [torch.atleast_2d(torch.cov(part.T)) / len(part) for part in slopes]
    half = torch.linalg.solve(curvature, torch.stack(variances).sum(dim=0))
    errors = torch.linalg.solve(curvature, half.T).diagonal().sqrt()
    step = torch.linalg.solve(curvature, gradient)
    return Neighbourhood(gradient, errors, float((step / errors).abs().max()))


def _slopes(rows: Rows, at: Tensor) -> Tensor:
    """Return the gradient of every row, (n, p); by columns, of which there are few."""
    basis = torch.eye(len(at), dtype=at.dtype)
    return torch.stack([torch.autograd.functional.jvp(rows, at, e)[1] for e in basis], dim=1)

"""SciPy's BFGS on a loss written in torch, its gradient by automatic differentiation."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor


@dataclass(frozen=True)
class BfgsInfo:
    """Where BFGS ended."""

    parameters: Tensor
    loss: float
    improvement: float
    """How far the loss fell."""
    gradient_norm: float
    """Euclidean norm of the gradient."""
    num_iterations: int


def minimise(
    loss: Callable[[Tensor], Tensor],
    start: Tensor,
    *,
    max_iterations: int,
    on_iteration: Callable[[float], None] | None = None,
) -> BfgsInfo:
    """Lower a smooth scalar `loss` of one vector by at most `max_iterations` BFGS iterations.

    A trial point where the loss is not finite counts as infinitely bad, so that the line search
    turns back from it; the start has to be finite. `on_iteration(loss)` is called after every
    iteration; whatever it raises ends the search.
    """

    def value_and_gradient(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        parameters = torch.tensor(x, dtype=start.dtype, device=start.device, requires_grad=True)
        value = loss(parameters)
        (gradient,) = torch.autograd.grad(value, parameters)
        if not (torch.isfinite(value) and torch.isfinite(gradient).all()):
            return np.inf, np.zeros_like(x)
        return float(value.detach()), gradient.cpu().numpy()

    first_loss = value_and_gradient(start.detach().cpu().numpy())[0]

    def callback(intermediate_result: OptimizeResult) -> None:
        if on_iteration is not None:
            on_iteration(float(intermediate_result.fun))

    # Interpolating towards an infinite loss makes invalid numbers, which the search then discards.
    with np.errstate(invalid="ignore", over="ignore"):
        found = minimize(
            value_and_gradient,
            start.detach().cpu().numpy(),
            jac=True,
            method="BFGS",
            callback=callback,
            options={"maxiter": max_iterations},
        )
    return BfgsInfo(
        parameters=torch.tensor(found.x, dtype=start.dtype, device=start.device),
        loss=float(found.fun),
        improvement=first_loss - float(found.fun),
        gradient_norm=float(np.linalg.norm(found.jac)),
        num_iterations=int(found.nit),
    )

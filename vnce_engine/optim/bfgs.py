"""SciPy's BFGS on a loss written in torch, its gradient by automatic differentiation."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor

from vnce_engine.runtime.checkpoint import Keep


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
    keep: Keep = lambda compute: compute(),
) -> BfgsInfo:
    """Lower a smooth scalar `loss` of one vector by at most `max_iterations` BFGS iterations.

    A trial point where the loss is not finite counts as infinitely bad, so that the line search
    turns back from it; the start has to be finite. `on_iteration(loss)` is called after every
    iteration; whatever it raises ends the search. Every evaluation is what `keep` returns for it:
    `Checkpoint.value`, if it is not to be done twice.
    """

    def evaluate(x: NDArray[np.float64]) -> Tensor:
        parameters = torch.tensor(x, dtype=start.dtype, device=start.device, requires_grad=True)
        value = loss(parameters)
        (gradient,) = torch.autograd.grad(value, parameters)
        if not (torch.isfinite(value) and torch.isfinite(gradient).all()):
            value, gradient = value.new_tensor(np.inf), torch.zeros_like(gradient)
        return torch.cat([value.detach().reshape(1), gradient]).cpu()

    def value_and_gradient(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        evaluated = keep(partial(evaluate, x)).numpy()
        return float(evaluated[0]), evaluated[1:]

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

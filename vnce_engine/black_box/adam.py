"""Adam on minibatches, for families and models with many parameters."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from vnce_engine.runtime.progress import FitCancelledError, OnStep
from vnce_engine.runtime.reports import FitStep

# Takes parameters and the numbers of the batch's rows; returns what is to be raised.
BatchObjective = Callable[[Tensor, Tensor], Tensor]


def adam_epochs(
    objective: BatchObjective,
    start: Tensor,
    num_rows: int,
    *,
    num_epochs: int,
    batch_size: int,
    step_size: float,
    generator: torch.Generator,
) -> Iterator[Tensor]:
    """Yield the parameters after each of `num_epochs` passes over rows in random batches.

    Source: Kingma and Ba (2015), arXiv:1412.6980.
    """
    parameters = start.clone().requires_grad_(True)
    optimiser = torch.optim.Adam([parameters], lr=step_size, maximize=True)
    for _ in range(num_epochs):
        for batch in torch.randperm(num_rows, generator=generator).split(batch_size):
            (parameters.grad,) = torch.autograd.grad(
                objective(parameters, batch.to(start.device)), parameters
            )
            optimiser.step()
        yield parameters.detach().clone()


def raise_by_adam(
    objective: BatchObjective,
    start: Tensor,
    num_rows: int,
    *,
    num_epochs: int,
    batch_size: int,
    step_size: float,
    generator: torch.Generator,
    on_step: OnStep | None = None,
) -> Tensor:
    """Return the parameters after the last of `adam_epochs`.

    Raises `FitCancelledError` if `on_step`, called after every pass, returns True.
    """
    parameters = start
    epochs = adam_epochs(
        objective,
        start,
        num_rows,
        num_epochs=num_epochs,
        batch_size=batch_size,
        step_size=step_size,
        generator=generator,
    )
    for epoch, moved in enumerate(epochs, start=1):
        parameters = moved
        step = FitStep("fit", epoch / num_epochs, epoch, None)
        if on_step is not None and on_step(step):
            raise FitCancelledError
    return parameters

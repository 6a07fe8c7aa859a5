"""VNCE by Adam on minibatches of data rows and the noise rows that belong to them."""

import math

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from vnce_engine.black_box.adam import adam_epochs
from vnce_engine.black_box.contrast import Contrast, Rows, draw_latents, vnce_terms
from vnce_engine.black_box.fits import VariationalFit, evaluated, fitted, vector, vnce_value
from vnce_engine.black_box.protocols import UnnormalisedModel, VariationalFamily
from vnce_engine.distributions.uniforms import open_uniforms
from vnce_engine.runtime.checks import check_count, check_positive
from vnce_engine.runtime.progress import OnStep
from vnce_engine.runtime.reports import FitStatus, FitStep


def fit_by_adam(
    model: UnnormalisedModel,
    family: VariationalFamily,
    contrast: Contrast,
    theta: ArrayLike,
    alpha: ArrayLike,
    *,
    num_epochs: int,
    generator: torch.Generator,
    batch_size: int = 100,
    step_size: float = 1e-3,
    on_step: OnStep | None = None,
) -> VariationalFit:
    """Raise J_VNCE in theta and alpha together by Adam, with new latent draws in every batch.

    A batch is some data rows and the noise rows that carry their missing cells. Adam has no
    stopping rule: a fit that runs to its end has the status `max_iterations`, and its path, one
    value an epoch on the contrast's own draws, shows whether it has settled. An epoch that makes
    the objective infinite or undefined ends it at the epoch before.
    """
    check_count("num_epochs", num_epochs)
    check_count("batch_size", batch_size)
    check_positive("step_size", step_size)
    device = contrast.device
    start = vector("theta", theta, device), vector("alpha", alpha, device)
    sizes = [len(part) for part in start]
    num_rows = len(contrast.data.u)

    def objective(both: Tensor, batch: Tensor) -> Tensor:
        theta_, alpha_ = both.split(sizes)
        data = _renewed(contrast.data, batch, generator)
        owners = torch.arange(len(contrast.noise.u), device=device) % num_rows
        noise = _renewed(contrast.noise, torch.isin(owners, batch).nonzero()[:, 0], generator)
        return vnce_terms(
            model,
            theta_,
            Contrast(data, noise),
            draw_latents(family, alpha_, data),
            # As in all fits, the noise term teaches theta alone.
            draw_latents(family, alpha_.detach(), noise),
        ).total

    value = vnce_value(model, family, contrast)
    point, path, status = start, [evaluated(value, *start)], FitStatus.MAX_ITERATIONS
    epochs = adam_epochs(
        objective,
        torch.cat(start),
        num_rows,
        num_epochs=num_epochs,
        batch_size=batch_size,
        step_size=step_size,
        generator=generator,
    )
    for epoch, both in enumerate(epochs, start=1):
        moved = both.split(sizes)
        reached = evaluated(value, *moved)
        if not math.isfinite(reached):
            status = FitStatus.NON_FINITE
            break
        point = moved
        path.append(reached)
        step = FitStep("fit", epoch / num_epochs, epoch, reached)
        if on_step is not None and on_step(step):
            status = FitStatus.CANCELLED
            break
    return fitted(*point, status, path)


def _renewed(rows: Rows, batch: Tensor, generator: torch.Generator) -> Rows:
    """Return the rows of a batch with new uniforms."""
    k, _, m = rows.uniforms.shape
    uniforms = open_uniforms((k, len(batch), m), generator).to(batch.device)
    return Rows(rows.u[batch], rows.log_noise[batch], uniforms)

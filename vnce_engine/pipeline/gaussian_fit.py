"""One fit of a Gaussian on all of R^d: the path of all models, on a problem of its own."""

from dataclasses import replace

import torch

from vnce_engine.contrastive.gaussian_problem import GaussianProblem
from vnce_engine.data.canonical import canonical_order
from vnce_engine.data.observations import Observations
from vnce_engine.inference.result import FitResult
from vnce_engine.pipeline.fit import FitOptions, fit_prepared, refuse_unbounded
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.device import chosen_device
from vnce_engine.runtime.progress import OnStep, Progress


def fit_gaussian(
    observations: Observations,
    options: FitOptions,
    seed: int,
    on_step: OnStep | None = None,
    checkpoint: Checkpoint | None = None,
) -> FitResult:
    """Estimate K, h and c from observations with holes, as `vnce_engine.pipeline.fit.fit` does.

    h is free and there is no barrier, whatever the options say: K is positive definite as it is.

    Raises `ValueError` where a weaker penalty than is safe meets as many parameters as rows, or
    where the checkpoint is another fit's.
    """
    options = replace(options, linear="free", barrier_rows=0.0)
    refuse_unbounded(observations, options)
    checkpoint = checkpoint or Checkpoint()
    choices = ("gaussian", replace(options, device="cpu"))
    checkpoint.begin_fit(observations.name_of_fit(choices, seed))
    rows, columns = canonical_order(observations)
    problem = GaussianProblem.prepare(
        observations.reordered(rows, columns).to(chosen_device(options.device)),
        options.noise_rows_each(observations.num_rows),
        options.noise_draws,
        torch.Generator().manual_seed(seed),
        options.noise_scale,
    )
    checkpoint.move_to(problem.scale.device)
    result = fit_prepared(problem, observations, options, Progress(on_step, checkpoint))
    return result.with_columns_reordered(torch.argsort(columns))

"""The fits of the two models: `fit_table` on a problem of each, with the options that it allows."""

from dataclasses import replace

from vnce_engine.contrastive.gaussian_problem import GaussianProblem
from vnce_engine.contrastive.truncated_problem import Problem
from vnce_engine.data.far_columns import lowered
from vnce_engine.data.observations import Observations
from vnce_engine.inference.result import FitResult
from vnce_engine.pipeline.fit import FitOptions, fit_table
from vnce_engine.runtime.progress import Progress


def fit_truncated_gaussian(
    observations: Observations, options: FitOptions, seed: int, progress: Progress | None = None
) -> FitResult:
    """Estimate the truncated Gaussian from non-negative observations, as `fit_table` does.

    Unless h is to be zero, columns very far above zero are fitted nearer to it (`far_columns.py`),
    and h, without which they have no model, is free.
    """
    shift = None
    if options.linear != "zero":
        observations, shift = lowered(observations)
    if shift is None:
        return fit_table(Problem, observations, options, seed, progress)
    options = replace(options, linear="free")
    result = fit_table(Problem, observations, options, seed, progress)
    return result.with_models(lambda model: model.with_columns_moved(shift))


def fit_gaussian(
    observations: Observations, options: FitOptions, seed: int, progress: Progress | None = None
) -> FitResult:
    """Estimate a Gaussian on all of R^d, as `fit_table` does.

    h is free and there is no barrier, whatever the options say: K is positive definite as it is.
    """
    options = replace(options, linear="free", barrier_rows=0.0)
    return fit_table(GaussianProblem, observations, options, seed, progress)

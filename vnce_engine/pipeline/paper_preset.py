"""`preset="paper"`: the paper's recipe behind the interface of `fit`."""

from dataclasses import replace

import torch
from torch import Tensor

from vnce_engine.contrastive.noise import ProductTruncatedNormal
from vnce_engine.contrastive.objective import effective_share, noise_probability
from vnce_engine.contrastive.paper_recipe import NOISE_RATIO, PaperFit, fit_paper
from vnce_engine.contrastive.truncated_problem import inverse_k0, scaled_columns
from vnce_engine.data.observations import Observations
from vnce_engine.inference.diagnostics import diagnose, numerical_warnings
from vnce_engine.inference.result import Diagnostics, FitResult
from vnce_engine.penalties.penalty import Penalty, PenaltyKind
from vnce_engine.pipeline.fit import MESSAGES, FitOptions, refuse_unbounded
from vnce_engine.runtime.progress import Progress
from vnce_engine.runtime.reports import FitStatus

_MESSAGES = {
    **MESSAGES,
    FitStatus.CONVERGED: "A cycle no longer raised the objective.",
    FitStatus.MAX_ITERATIONS: "The paper's recipe ended at its cap of BFGS iterations, `max_iter`, "
    "before the objective converged; with missing cells, whose draws are new every cycle, it "
    "normally does. Look at the objective's path.",
}


def fit_by_papers_recipe(
    observations: Observations, options: FitOptions, seed: int, progress: Progress
) -> FitResult:
    """Estimate the truncated Gaussian as `fit` does, by the paper's algorithm (`paper_recipe.py`).

    `options.linear` and `options.penalty` mean "zero" and None where they are "auto";
    `options.max_cycles` caps the BFGS iterations for the model. The noise is independent, ten rows
    a data row, whatever the options say. With the checkpoint of an interrupted fit, which is
    `Checkpoint.load(step.checkpoint.dump())`, it goes on from there.

    Raises `ValueError` if an observed cell is zero, or where the checkpoint is another fit's.
    """
    has_linear = options.linear == "free"
    strength = None if isinstance(options.penalty, str) else options.penalty
    refuse_unbounded(observations, replace(options, penalty=strength))
    progress.checkpoint.begin_fit(observations.name_of_fit(("paper", options), seed))
    scaled, scale = scaled_columns(observations)
    penalty = Penalty(
        strength or 0.0,
        options.penalty_kind or PenaltyKind.ADAPTIVE,
        inverse_k0(scaled, has_linear=has_linear),
        scaled.num_rows,
    )

    fit = fit_paper(
        scaled,
        ProductTruncatedNormal.fit(scaled),
        torch.Generator().manual_seed(seed),
        has_linear=has_linear,
        penalty=None if strength is None else penalty.value,
        max_iterations=options.max_cycles,
        progress=progress,
    )
    diagnostics = _diagnose(observations, scaled, fit, penalty.inverse_k0)
    return FitResult(
        model=fit.model.with_columns_scaled(scale),
        status=fit.status,
        message=_MESSAGES[fit.status],
        objective_path=fit.objective_path,
        num_iterations=fit.num_iterations,
        penalty=strength,
        penalty_path=(),
        linear_choice="free" if has_linear else "zero",
        linear_evidence=None,
        diagnostics=diagnostics,
        warnings=numerical_warnings(diagnostics, ()),
        penalty_kind=None if strength is None else options.penalty_kind or PenaltyKind.ADAPTIVE,
    )


def _diagnose(
    observations: Observations, scaled: Observations, fit: PaperFit, scaling: Tensor
) -> Diagnostics:
    log_ratio, is_incomplete = fit.log_ratio_data, ~scaled.observed.all(dim=1)
    has_draws = len(log_ratio) > 1
    return diagnose(
        observations,
        fit.model.precision,
        scaling,
        gradient_norm=fit.gradient_norm,
        wrong=noise_probability(log_ratio, NOISE_RATIO).mean(dim=0),
        effective_sample_size=(
            float(effective_share(log_ratio[:, is_incomplete]).mean()) if has_draws else None
        ),
        num_draws=len(log_ratio),
        noise_ratio=NOISE_RATIO,
    )
